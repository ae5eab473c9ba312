import x from 'y';

/** Options. */
export interface Options {
  name: string;
}

export class Printer<T> {
  constructor(private name: string) {
    super(name);
  }

  async printAll(items: T[]): Promise<void> {
    for (const i of items) {
      if (i) {
        await this.print(i);
      }
    }
  }

  get size(): number {
    return 1;
  }
}

export default async function main(args: string[]) {
  return run(() => {
    x();
  });
}

export const add = (a: number, b: number): number => a + b;
const glob = 'src/**/*.js';
type Id = string;
