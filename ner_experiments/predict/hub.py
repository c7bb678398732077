"""Where a trained tagger is: a folder, or a repository of the Hugging Face hub that `export --to hub-folder` filled."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from ner_experiments.runs import artifacts

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def folder_of(run: Path | str, revision: str | None = None) -> Path:
    """The folder of a run; a name such as user/name that is no folder is fetched from the hub, or its cache.

    Only the files that `load` reads are fetched. revision: a commit, branch or tag. Raises ValueError if
    `huggingface_hub` is not installed or cannot fetch it.
    """
    folder = Path(run)
    if folder.exists() or not _REPOSITORY.fullmatch(str(run)):
        return folder
    if find_spec("huggingface_hub") is None:
        raise ValueError(f"{run}: no such folder; to fetch it from a hub: pip install huggingface_hub")
    import huggingface_hub

    try:
        fetched = huggingface_hub.snapshot_download(
            str(run), revision=revision, allow_patterns=[*artifacts.TAGGER]
        )
    except Exception as error:  # those of the package and of the network
        rule = next(iter(str(error).splitlines()), "")
        raise ValueError(f"{run}: neither a folder nor on the hub ({type(error).__name__}: {rule})") from None
    return Path(fetched)
