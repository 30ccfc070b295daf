"""The net under a redesign: two checkouts compared through public names only (`python tests/house/compare.py --help`)."""
