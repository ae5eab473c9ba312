#include <stdio.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A point. */
struct point {
	int x, y;
};

typedef enum { RED } color;

static int
add(int a, int b)
{
	return a + b;
}

/*
 * Prints it.
 */
static void print_point(const struct point *p)
{
	if (p) {
		printf("%d\n", add(p->x, p->y));
	}
}

int total = compute(3);
int main(int argc, char *argv[]) {
	return 0;
}
