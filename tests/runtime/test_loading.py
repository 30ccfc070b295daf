"""Code that is loaded and dropped, and programs that are described, run and dropped, leave nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

LOADS = """
    from morok.runtime import jit
    text = "define void @f(ptr %args, ptr %vars) {{ ret void }}"
    code = jit.emit(text)
    def work(k):
        assert jit.load(code, "f").address
    warm, many = 500, 2000
"""
PROGRAMS = """
    import numpy as np
    from morok import Tensor
    from morok.runtime import device
    from morok.tensor import plans, schedule
    for table in (schedule._schedules, plans._kernels, device.device("CPU")._kernels):
        table.entries = 8  # so that the tables are soon full
    x = Tensor(np.arange(8, dtype=np.float32)).realize()
    def work(k):
        assert (x * float(k) + 1.5).max().item() == 7 * k + 1.5
    warm, many = 200, 500
"""
MEASURED = """
    import json, os
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for k in range(warm):
        work(k)
    before = resident()
    for k in range(warm, warm + many):
        work(k)
    print(json.dumps((resident() - before) / many))
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("program", "most"), [(LOADS, 6000), (PROGRAMS, 10_000)], ids=["libraries", "programs"])
def test_memory_stays_on_a_plateau(program: str, most: int) -> None:
    """Bytes that each leaves behind: of a library 9000 if one loader loads them all, of a program 15,000 and more if all is kept.

    Programs still fill caches, and Python takes memory a megabyte at a time, which are 2000 bytes for each of 500.
    """
    text = textwrap.dedent(program).replace("{{", "{").replace("}}", "}") + textwrap.dedent(MEASURED)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) < most


def test_code_is_there_as_long_as_somebody_has_it() -> None:
    import ctypes

    from morok.runtime import jit, loading

    def made(k: int) -> jit.Code:
        return jit.load(jit.emit(f"define i32 @f{k}() {{ ret i32 {k} }}"), f"f{k}")

    before = len(loading._alive)
    kept = {k: made(k) for k in range(0, 100, 10)}
    for k in range(100):
        made(1000 + k)
    for k, code in kept.items():
        assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address)() == k
    assert len(loading._alive) <= before + len(kept) + 1  # the last one is unloaded with the next that is loaded


FAR_APART = """
    import ctypes
    from morok.runtime import jit
    table = ", ".join(f"i64 {k}" for k in range(2048))
    code = jit.emit(f'''
    @table = private constant [2048 x i64] [{table}]
    define i64 @f(i64 %k) {{
      %at = getelementptr [2048 x i64], ptr @table, i64 0, i64 %k
      %v = load i64, ptr %at
      ret i64 %v
    }}
    ''')
    loaded = [jit.load(code, "f")]
    libc = ctypes.CDLL(None)
    libc.mmap.restype, libc.munmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    page, far = 4096, 4 << 30
    hole = 2 * page
    def reserved(size):  # no access, no memory behind it
        return libc.mmap(None, size, 0, 0x4022, -1, 0)
    regions = [reserved(far + hole) for _ in range(60)]
    lowest = min(regions)
    for size in (hole, page):  # there are no holes left, but those made here
        while reserved(size) > lowest:
            pass
    for region in regions:
        libc.munmap(region + far, hole)
    for _ in range(30):
        loaded.append(jit.load(code, "f"))
    for library in loaded:
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address)(7) == 7
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="maps memory as Linux does")
def test_code_loads_where_free_addresses_are_far_apart() -> None:
    """Code reaches its constants within 2 GB: both are loaded in one piece, whatever else has the addresses between holes."""
    text = textwrap.dedent(FAR_APART)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
