"""Run cases and compare each outcome with the oracle: equal content, or a refusal with line and rule."""

import re
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzz.oracle import Faulty
from fuzz.other_readers import all_readers
from fuzz.readers import Case, Reader
from ner_experiments.data.remarks import FaultsError

SECONDS = 20
"""Time limit of a case; nearly all take less than a thousandth of it."""
LONGEST_MESSAGE = 600


class WrongError(Exception):
    """Misbehavior of a reader."""


class HangError(BaseException):
    """A timeout; not an Exception, so that no reader catches it."""


@dataclass
class Outcome:
    """Statistics over the cases of one reader. `wrong`: number of the case -> what went wrong."""

    tried: int = 0
    whole: int = 0
    accepted: int = 0
    mentions: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    rules: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, str] = field(default_factory=dict)


def run_named(seed: int, name: str, numbers: range) -> Outcome:
    """`run` the reader of this name on files in main memory, if /dev/shm exists."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        (reader,) = (reader for reader in all_readers(Path(folder)) if reader.name == name)
        return run(reader, numbers, seed)


def run(reader: Reader, numbers: range, seed: int) -> Outcome:
    """Run these cases of a reader. Case `number` is always the same one."""
    outcome, began = Outcome(), time.perf_counter()
    with alarm():
        for number in numbers:
            case = reader.case(Random(f"{seed} {reader.name} {number}"))
            reader.path.write_bytes(case.content)
            start = time.perf_counter()
            try:
                rule = attempt(reader, case)
            except (WrongError, HangError) as error:
                outcome.wrong[number] = f"{error}\n{case.content[:2000]!r}"
                rule = None
            outcome.slowest = max(outcome.slowest, time.perf_counter() - start)
            outcome.tried += 1
            outcome.whole += case.known is not None
            outcome.accepted += rule == ""
            if rule:
                outcome.rules[rule] += 1
    outcome.seconds = time.perf_counter() - began
    return outcome


def attempt(reader: Reader, case: Case) -> str:
    """The rule by which the reader refused the case; "" if it was accepted. Raises WrongError on misbehavior."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        found, refusal = reader.read(), None
    except ValueError as error:
        found, refusal = None, error
    except Exception as error:
        raise WrongError("".join(traceback.format_exception(error))) from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        known = refusal is None or reader.judges
        expected, faults = reader.expected(case.content) if known else None, None
    except Faulty as faulty:
        expected, faults = None, faulty.lines
    except Exception as error:
        raise WrongError("the oracle: " + "".join(traceback.format_exception(error))) from error
    if refusal is not None:
        return refused(reader, case, refusal, faults)
    if faults is not None:
        raise WrongError(f"accepted, though lines {sorted(faults)} are at fault")
    if found != expected:
        raise WrongError(f"read {found}\nnot  {expected}")
    if case.known is not None and not reader.agrees(found, case.known):
        raise WrongError(f"read {found}\nwritten {case.known}")
    return ""


def refused(reader: Reader, case: Case, refusal: ValueError, faults: set[int] | None) -> str:
    """Check a refusal and return its rule, without what differs from file to file."""
    message = str(refusal)
    if type(refusal) not in (ValueError, FaultsError):
        raise WrongError("".join(traceback.format_exception(refusal)))
    if case.known is not None:
        raise WrongError(f"refused a whole file: {message}")
    if len(message) > LONGEST_MESSAGE or not message.isprintable():
        raise WrongError(f"a refusal of {len(message)} characters: {message[:LONGEST_MESSAGE]!r}")
    number = r"(?:[\d,]+ faults(?:, the first 3)?: )?"
    place = re.match(rf"{number}{re.escape(str(reader.path))}(?::([1-9]\d*))?: ", message)
    if place is None and not (reader.whole_file and message.startswith(reader.whole_file)):
        raise WrongError(f"a refusal without its place: {message}")
    if reader.judges and faults is None:
        raise WrongError(f"refused without reason: {message}")
    if reader.judges and faults and (place is None or int(place[1] or 0) not in faults):
        raise WrongError(f"names another line than {sorted(faults)}: {message}")
    return rule_of(message[place.end() if place else 0 :])


def rule_of(message: str) -> str:
    message = re.sub(r"b?'(\\.|[^'\\])*'|b?\"(\\.|[^\"\\])*\"", "...", message)
    message = re.sub(r"0x[0-9a-f]+|(?<![a-z])-?\d[\d,.]*", "N", message)
    return re.split(": \\.\\.\\.|, got |; did|; there|; the run", message)[0][:70]


@contextmanager
def alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise HangError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
