package com.example;

/**
 * Prints invoices.
 */
@Service
public final class Code<T> extends Base implements Runnable {
    private static final int MAX = compute(3);

    public Code(String name) {
        this.name = name;
    }

    /** Runs it. */
    @Override
    public void run() {
        if (ready()) {
            return;
        } else if (other(x)) {
            new Thread(this).start();
        }
    }

    List<String> names(int n) throws IOException {
        return find(n);
    }

    enum Color { RED }
}
