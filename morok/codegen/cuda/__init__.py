"""Instruction lists as CUDA C text."""

from morok.codegen.cuda.renderer import render as render
