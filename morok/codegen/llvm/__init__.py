"""Instruction lists as LLVM IR text."""

from morok.codegen.llvm.render import render as render
