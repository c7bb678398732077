"""`python benchmarks/tables.py`: write the tables of README.md and RESULTS.md, between markers, from results/*.json.

A table stands between `<!-- NAME -->` and `<!-- end -->`, where NAME is the benchmark's; `targets` is the table of the
speed targets and whether they were met. Each benchmark prints the same tables when it ends.
"""

import json
import re
from pathlib import Path

import gpu_tables
import result_tables
from figures import Result, table
from targets import targets

FOLDER = Path(__file__).parent
PAGES, RESULTS = (FOLDER / "README.md", FOLDER / "RESULTS.md"), FOLDER / "results"
MARKED = re.compile(r"(?<=<!-- )(?!end\b)(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
PACKAGES = ("torch", "triton", "numba", "pytorch-crf", "torch-struct", "flair", "seqeval", "gensim")


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        text = MARKED.sub(lambda match: f"{match[1]}{match[2]}\n{marked(match[1])}\n\n", text)
        page.write_text(text, encoding="utf-8")


def marked(name: str) -> str:
    if name == "targets":
        return table(
            *("", "target", "measured", "limit", "met", "script"),
            rows=targets({path.stem: read(path) for path in RESULTS.glob("*.json")}),
        )
    path = RESULTS / f"{name}.json"
    if name == "gpu" and not path.exists():
        return "Not measured yet: no GPU was available."
    return of(path)


def of(path: Path) -> str:
    """The tables of a result, and the circumstances in which it was measured."""
    result = read(path)
    name = result["benchmark"]
    tables = gpu_tables.gpu if name == "gpu" else getattr(result_tables, name)
    return "\n\n".join([*tables(result), circumstances(result)])


def read(path: Path) -> Result:
    return json.loads(path.read_text(encoding="utf-8"))


def circumstances(result: Result) -> str:
    options = f"--threads {result['threads']} --rounds {result['rounds']}"
    options += " --clock processor" if result.get("clock") == "processor" else ""
    left_out = f" Left out: {'; '.join(result['left_out'])}." if result.get("left_out") else ""
    versions = [f"{name} {result['versions'][name]}" for name in PACKAGES if name in result["versions"]]
    commit = result["commit"] or "unknown"
    machine = "; ".join([*([result["gpu"]] if "gpu" in result else []), result["cpu"]])
    return (
        f"`python benchmarks/{result['benchmark']}.py {options}`, "
        f"{result['date'][:10]}, commit {commit[:12]}{'+' * commit.endswith('+')}; {machine}; "
        f"Python {result['python']}, {', '.join(versions)}.{left_out}"
    )


if __name__ == "__main__":
    main()
