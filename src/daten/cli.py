"""The `daten` command: run, train, show and compile programs in TOML, and generate text with GPT-2."""
from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from caten import __version__, build_progress, diagnostic_lines
from caten.cli import array_files, atomic_files
from caten.cli.diagnostics import Reporter
from caten.cli.standard_streams import open_streams
from caten.errors import CatenError, Diagnostic, error

OK, FAILED, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 4, 130
COMPLETE = "_DATEN_COMPLETE"                                # with which a shell asks for completions


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="daten", message="%(prog)s %(version)s")
def cli() -> None:
    """Run, train and compile graphs of operators, which are programs in TOML.

    \b
      daten run program.toml --input X=x.npy
      daten train program.toml --data digits.npz -o weights.safetensors
      daten show program.toml --size B=32
    """


def _program(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that all commands over a program share."""
    for option in (
            click.option("--size", "sizes", multiple=True, metavar="NAME=N",
                         help="Set the size NAME of the random inputs. Default: that of the inputs given, else 32. May "
                              "be repeated."),
            click.option("--weights", type=click.Path(exists=True, dir_okay=False),
                         help="Read the parameters from this .safetensors file, which `daten train -o` writes."),
            click.option("--runtime", default="clang", show_default=True,
                         help="The target: the name of a runtime of caten, or the path of a runtime file."),
            click.argument("program", type=click.Path(allow_dash=True))):
        function = option(function)
    return function


_forward = click.option("--forward", is_flag=True, help="Leave out the gradients of the loss.")


@cli.command()
@_program
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy",
              help="Read an input from a .npy file. Other inputs are random (standard normal, seed 0); integer and "
                   "bool inputs are 0.")
@click.option("-o", "output", type=click.Path(dir_okay=False),
              help="Write the outputs to this .npz file, by name. Without it they are printed.")
def run(program: str, runtime: str, weights: str | None, sizes: Sequence[str], inputs: Sequence[str],
        output: str | None) -> None:
    """Compute the outputs of a program."""
    import numpy as np

    from .command_arrays import array, drawn, pair
    read = _read(program, runtime, weights)
    if output is not None:
        atomic_files.check(output)
    own = {name: array(path) for name, path in map(pair, inputs)}
    for name in own:
        if name not in read.inputs:
            raise error("E678", f"the program has no input '{name}'", hint=f"its inputs are {', '.join(read.inputs)}")
    given = drawn(read, sizes, own) | own
    made = read.forward(given)
    wanted = read.outputs or tuple(made)
    array_files.check_output(output, len(wanted))
    from .tensor import realize
    realize(*[made[name] for name in wanted])
    if output is not None:
        array_files.save({name: made[name].numpy() for name in wanted}, output)
    else:
        for name in wanted:
            click.echo(f"{name} = {np.array2string(made[name].numpy(), threshold=24, precision=5)}")


@cli.command()
@_program
@click.option("--data", type=click.Path(exists=True, dir_okay=False),
              help="The training data: a .npz file with an array for each input. The default is the file that "
                   "[train] data names, in the folder of the program.")
@click.option("--epochs", type=click.IntRange(1), help="The number of epochs. The default is [train] epochs.")
@click.option("--find-nan", is_flag=True,
              help="When a loss or a parameter is NaN or infinite, report the first operator that made such a value.")
@click.option("-o", "output", type=click.Path(dir_okay=False),
              help="Write the parameters to this .safetensors file, after each epoch.")
def train(program: str, runtime: str, weights: str | None, sizes: Sequence[str], data: str | None, epochs: int | None,
          find_nan: bool, output: str | None) -> None:
    """Train the parameters of a program on the arrays of --data. Prints the mean loss of each epoch, and its time.

    A loss or a parameter that is NaN or infinite ends the training with exit code 1. The file of -o keeps the
    parameters of the epoch before."""
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress

    from .command_arrays import arrays
    from .training import NotFinite, epoch, optimizer_named
    read = _read(program, runtime, weights)
    if not read.loss:
        raise error("E678", "the program has no loss", hint='[main] loss = "L" names what is to become small')
    if not read.trained:
        raise error("E678", "the program has no parameter to train", hint='W = "W{float grad}[64 10]" declares one')
    settings = read.train
    path = data or (str(Path(program).parent / settings["data"]) if settings["data"] else None)
    if path is None:
        raise error("E678", "there is nothing to train on",
                    hint="--data names a .npz file with an array for each input")
    given = arrays(path, read)
    if output is not None:
        atomic_files.check(output)
    more = {"momentum": float(settings["momentum"])} if settings["momentum"] else {}
    optimizer = optimizer_named(settings["optimizer"], list(read.trained.values()), lr=float(settings["lr"]),
                                weight_decay=float(settings["weight_decay"]), **more)
    draw = np.random.default_rng(int(settings["seed"]))
    count = -(-len(next(iter(given.values()))) // int(settings["batch"]))
    done = 0
    try:
        for n in range(1, (epochs or int(settings["epochs"])) + 1):
            start = time.perf_counter()
            with Progress(transient=True, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
                name = f"epoch {n}"
                task = progress.add_task(name, total=count)
                advance = partial(progress.update, task, advance=1, description=name)
                with build_progress.heard(partial(_build, progress, task, name)):
                    loss = epoch(read.loss_of, optimizer, given, int(settings["batch"]), draw, float(settings["clip"]),
                                 find_nan, advance)
            click.echo(f"epoch {n}: loss {loss:.5f}, {time.perf_counter() - start:.2f} s")
            if output is not None:
                _save(read.parameters, output)
            done = n
    except NotFinite as problem:
        raise error("E678", f"epoch {done + 1}, {problem}", hint=problem.hint,
                    notes=((_kept(output, done), None),)) from None
    except ValueError as problem:                            # of backward: the loss depends on no parameter
        raise error("E678", f"cannot train on the loss '{read.loss}': {problem}") from None
    except KeyboardInterrupt:
        _interrupted(f"in epoch {done + 1}: {_kept(output, done)}")


def _save(parameters: Mapping[str, Any], path: str) -> None:
    """Write the parameters of a program. E909 where the file cannot be written."""
    from .weights import save
    try:
        save({name: p.numpy() for name, p in parameters.items()}, path)
    except OSError as problem:
        raise atomic_files.unwritable(path, problem) from None


def _kept(output: str | None, done: int) -> str:
    """What a training that ends before its time leaves."""
    if output is None:
        return "the parameters are not saved, for there is no -o"
    return f"{output} has the parameters after epoch {done}" if done else f"{output} is as it was"


def _interrupted(what: str) -> NoReturn:
    """The end after Ctrl-C, with what was done until then."""
    click.echo(f"daten: interrupted {what}", err=True)
    sys.exit(INTERRUPTED)


def _build(progress: Any, task: Any, name: str, done: int, of: int, what: str) -> None:
    """Show beside the name of an epoch how far the build is in front of its first step."""
    progress.update(task, description=f"{name} ({what}{f' {done} of {of}' if of else ''})")


@cli.command()
@_program
@_forward
@click.option("--html", type=click.Path(dir_okay=False), help="Write a page of values, kernels and source.")
@click.option("--dot", type=click.Path(dir_okay=False), help="Write the values and kernels, for Graphviz.")
def show(program: str, runtime: str, weights: str | None, sizes: Sequence[str], forward: bool, html: str | None,
         dot: str | None) -> None:
    """List the kernels, one per line with its operands, and then the arrays, the memory and the operations.

    For a program with a loss, the kernels of the gradients are included."""
    from .listing import listed
    made = _lowered(program, runtime, weights, sizes, forward)
    for one in made:
        click.echo(f"; {one.program.name}")
        for line in listed(one):
            click.echo(line)
    emits = [f"--emit={kind}={path}" for kind, path in (("html", html), ("dot", dot)) if path is not None]
    if emits:
        sys.exit(_caten(made, _stem(program), runtime, emits))


@cli.command()
@_program
@_forward
def lower(program: str, runtime: str, weights: str | None, sizes: Sequence[str], forward: bool) -> None:
    """Print the program in caten's tensor IR, which `caten schedule -` and `caten compile -` read: NAME_forward
    computes the outputs, NAME_backward the loss and the gradient grad_W of each parameter W.

    \b
      daten lower mlp.toml | caten schedule - -o mlp.schedule.lisp
    """
    click.echo(_text(_lowered(program, runtime, weights, sizes, forward)), nl=False)


@cli.command("compile", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_program
@_forward
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def compile_(program: str, runtime: str, weights: str | None, sizes: Sequence[str], forward: bool,
             rest: Sequence[str]) -> None:
    """Compile a program to a library with the functions NAME_forward and NAME_backward, and write its header and
    manifest. After PROGRAM you can give options of `caten compile`.

    \b
      daten compile mlp.toml                                  mlp.so, mlp.h, mlp.json
      daten compile mlp.toml -o build/net.so -march=native
      daten compile mlp.toml --emit=so,example                also mlp_main.c, which calls both and checks itself
    """
    sys.exit(_caten(_lowered(program, runtime, weights, sizes, forward), _stem(program), runtime, rest))


@cli.command()
@_program
@_forward
@click.option("--trace", type=click.Path(dir_okay=False),
              help="Write the run as JSON for a trace viewer (chrome://tracing or ui.perfetto.dev).")
def profile(program: str, runtime: str, weights: str | None, sizes: Sequence[str], forward: bool,
            trace: str | None) -> None:
    """Time each kernel. Prints its share of the time, its GFLOP/s and GB/s, and its speed in percent of the peak of the
    machine."""
    from .profiling import profiled
    if trace is not None:
        atomic_files.check(trace)
    found = profiled(_lowered(program, runtime, weights, sizes, forward)[-1])
    for line in found.lines():
        click.echo(line)
    if trace is not None:
        atomic_files.write(trace, found.trace())


@cli.command()
@click.argument("tokens", nargs=-1, type=int, required=True)
@click.option("--model", default="124M", show_default=True,
              help="The size of the model: 124M, 355M, 774M or 1558M. With --weights it follows from the file.")
@click.option("--weights", type=click.Path(exists=True, dir_okay=False),
              help="The published weights of GPT-2, a .safetensors file. Without it the weights are random.")
@click.option("-n", "--count", type=click.IntRange(1), default=20, show_default=True, help="The number of new tokens.")
@click.option("--temperature", type=click.FloatRange(0), default=0.0, show_default=True,
              help="Divide the logits by this number before the softmax, and sample from it. 0: always the most likely "
                   "token.")
@click.option("--top-k", type=click.IntRange(0), default=0, show_default=True,
              help="Sample only from this number of most likely tokens. 0: from all.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="The seed of the sampling and of random weights.")
@click.option("--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), default="float32", show_default=True,
              help="The element type of weights and results.")
def generate(tokens: Sequence[int], model: str, weights: str | None, count: int, temperature: float, top_k: int,
             seed: int, dtype: str) -> None:
    """Generate text with GPT-2. TOKENS are the token ids of the prompt. The new token ids are printed one per line, and
    then the time of the first token and the speed in tokens per second, on stderr. Without --weights the weights are
    random."""
    if math.isnan(temperature):
        raise click.BadParameter("nan is no number", param_hint="--temperature")
    from . import random
    from .models.gpt2 import GPT2, SIZES, size_of
    from .weights import load
    random.seed(seed)
    values = load(weights) if weights else None
    if values is None and model not in SIZES:
        raise error("E678", f"there is no model '{model}'", hint=f"there are {', '.join(SIZES)}")
    try:
        network = GPT2(SIZES[model] if values is None else size_of(values))
        if values is not None:
            network.load_published(values)
    except ValueError as problem:
        raise error("E678", f"{weights} has no weights of GPT-2: {problem}",
                    hint="the file has the names and shapes of the published weights") from None
    network.to(dtype)
    if any(not 0 <= t < network.size.vocabulary for t in tokens):
        raise error("E678", f"a token is a number from 0 to {network.size.vocabulary - 1}")
    if len(tokens) + count - 1 > network.size.context:      # the last token is not read
        raise error("E678", f"{len(tokens)} tokens and {count} new ones do not fit into the context of "
                            f"{network.size.context} tokens", hint="-n sets the number of new tokens")
    start = first = time.perf_counter()
    made = 0
    try:
        for token in network.generate(tokens, count, temperature, top_k, seed):
            first = first if made else time.perf_counter()
            made += 1
            click.echo(str(token))
    except KeyboardInterrupt:
        _interrupted(f"after {made} of {count} tokens")
    rate = (made - 1) / (time.perf_counter() - first) if made > 1 else 0.0
    click.echo(f"first token after {first - start:.2f} s, then {rate:.1f} tokens/s", err=True)


def _lowered(path: str, runtime: str, weights: str | None, sizes: Sequence[str], forward: bool) -> Sequence[Any]:
    """The programs in tensor IR that compute the outputs, and the loss with its gradients."""
    from .command_arrays import drawn
    from .lowering import lowered
    read = _read(path, runtime, weights)
    made = lowered(read, drawn(read, sizes), _stem(path), not forward)
    for one in made:
        for name, n in one.fixed.items():
            click.echo(f"daten: warning: {one.program.name} is for {name} = {n} alone", err=True)
    return made


def _stem(path: str) -> str:
    """What the functions and files of a program are called."""
    name = "program" if path == "-" else Path(path).stem.lower()
    return "".join([c if c.isascii() and c.isalnum() else "_" for c in name])


def _text(made: Sequence[Any]) -> str:
    from caten.core.text import show as text_of
    return "".join([f"{text_of(one.program)}\n" for one in made])


def _caten(made: Sequence[Any], stem: str, runtime: str, words: Sequence[str]) -> int:
    """Run `caten compile` on programs, with files named after `stem`; its exit code."""
    import tempfile

    from caten.cli.boundary import guarded
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, f"{stem}.lisp")
        text.write_text(_text(made), "utf-8")
        return guarded(["compile", *words, "--runtime", runtime, str(text)])


def _read(path: str, runtime: str, weights: str | None) -> Any:
    from . import program_file, settings
    settings.use(runtime)
    if path == "-":
        read = program_file.parsed(sys.stdin.read())
    else:
        try:
            read = program_file.read(path)
        except OSError as problem:
            raise error("E678", f"cannot read {path}: {problem.strerror}") from None
    if weights is not None:
        from .weights import load
        values = load(weights)
        for name, p in read.parameters.items():
            if name not in values or values[name].shape != p.shape:
                raise error("E678", f"{weights} has no '{name}' of the shape {list(p.shape)}")
            p.assign(values[name])
    return read


def main(interruptible: bool = False) -> NoReturn:
    """Run the command line: errors as messages, exit codes as of `caten`. `interruptible`: Ctrl-C raises
    KeyboardInterrupt during the run; before and after, it ends the process."""
    diagnostic_lines.PROGRAM.append("daten")
    reporter = Reporter(format="text")
    code = OK
    open_streams()
    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if COMPLETE in os.environ:
            cli.main(prog_name="daten", standalone_mode=False)
        with cli.make_context("daten", sys.argv[1:]) as context:           # cli.main calls a closed pipe an error
            cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("daten: interrupted", err=True)
        code = INTERRUPTED
    except click.ClickException as problem:
        problem.show()
        code = USAGE
    except CatenError as problem:
        code = reporter.caught(problem)
    except MemoryError:
        click.echo("daten: error: there is not enough memory", err=True)
        code = FAILED
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")                   # noqa: SIM115   for the flush at the end of the process
    except OSError as problem:
        what = problem.filename or "cannot write stdout"
        click.echo(f"daten: error: {what}: {problem.strerror}", err=True)
        if problem.filename is None:
            sys.stdout = open(os.devnull, "w")               # noqa: SIM115   for the flush at the end of the process
        code = FAILED
    except Exception as problem:
        code = _internal(problem, reporter)
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def _internal(problem: BaseException, reporter: Reporter) -> int:
    """Report a fault of ours, whose traceback goes to a file in the cache; the exit code."""
    from caten import faults
    where = faults.kept(problem, f"daten {' '.join(sys.argv[1:])}", os.environ.get("CATEN_CACHE_DIR") or None)
    reporter.show([Diagnostic("E940", f"internal error: {type(problem).__name__}: {problem}",
                              notes=((where, None),), hint=faults.PLEASE)])
    return INTERNAL
