"""Instruction lists as CUDA C text."""

from morok.codegen.cuda.render import render as render
