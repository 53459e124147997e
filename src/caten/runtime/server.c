/* A program around the functions above, for a machine that cannot be called directly: it serves calls over its standard input and output.
 *
 * A request: the number of the operator (int64); for every argument 16 bytes, which are the scalar itself or, of a tensor, its length in bytes (int64);
 * the bytes of all tensors, in order. The reply: what the function returned (int64) and, if that
 * is 0, the bytes of the tensors that are written. The program ends when its input does, with NO_ROOM + n if argument n does not fit its memory. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CT_NO_ROOM = 16, CT_SLACK = 64 };
static pid_t ct_parent;

/* Once a second: whoever asked for a call that does not end may be gone. */
static void ct_look(int signal)
{
    (void)signal;
    if (getppid() != ct_parent) _exit(1);
    alarm(1);
}

static int ct_serve(void)
{
    ct_slot slots[CT_MOST];
    char *memory[CT_MOST];
    int64_t op, result;
    if (fread(&op, sizeof op, 1, stdin) != 1) return 0;
    const char *kinds = ct_kinds[op];                       /* of each argument: value, read, written */
    const size_t count = strlen(kinds);
    if (fread(slots, sizeof slots[0], count, stdin) != count) return 1;
    for (size_t n = 0; n < count; n++) {
        const size_t length = kinds[n] == 'v' ? 0 : (size_t)slots[n].length;
        memory[n] = 0;
        if (kinds[n] == 'v') continue;
        memory[n] = malloc(length + CT_SLACK);
        if (!memory[n]) return CT_NO_ROOM + (int)n;
        if (fread(memory[n], 1, length, stdin) != length) return 1;
    }
    result = ct_calls[op](slots, memory);
    fwrite(&result, sizeof result, 1, stdout);
    for (size_t n = 0; n < count; n++) {
        if (kinds[n] == 'w' && result == 0) fwrite(memory[n], 1, (size_t)slots[n].length, stdout);
        free(memory[n]);
    }
    return fflush(stdout) == 0 ? -1 : 1;
}

int main(void)
{
    const struct rlimit none = {0, 0};
    struct sigaction look = {0};
    int status = -1;
    setrlimit(RLIMIT_CORE, &none);
    ct_parent = getppid();
    look.sa_handler = ct_look;
    look.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &look, 0);
    alarm(1);
    while (status < 0) status = ct_serve();
    return status;
}
