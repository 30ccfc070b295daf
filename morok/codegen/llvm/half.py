"""Conversions between half and float for processors without instructions for them.

There LLVM calls two functions of its run-time library, which a Python process may lack: this is their text.
"""

from __future__ import annotations

from typing import Final

NAMES: Final = ("__extendhfsf2", "__truncsfhf2")

# Widening shifts the mantissa and corrects the exponent, of subnormal numbers too, by one multiplication by 2^112. Narrowing
# rounds by an addition: below 2^-14 of the float 0.5, whose last bit equals the last bit of a subnormal half, else on the integer
# bits.
TEXT: Final = """\
define float @__extendhfsf2(half %x) {
  %h = bitcast half %x to i16
  %bits = zext i16 %h to i32
  %sign.at = and i32 %bits, 32768
  %sign = shl i32 %sign.at, 16
  %magnitude = and i32 %bits, 32767
  %moved = shl i32 %magnitude, 13
  %small = bitcast i32 %moved to float
  %scaled = fmul float %small, 0x46F0000000000000
  %scaled.bits = bitcast float %scaled to i32
  %special = icmp uge i32 %magnitude, 31744
  %filled = or i32 %moved, 2139095040
  %chosen = select i1 %special, i32 %filled, i32 %scaled.bits
  %result = or i32 %chosen, %sign
  %f = bitcast i32 %result to float
  ret float %f
}

define half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %sign.at = lshr i32 %bits, 16
  %sign = and i32 %sign.at, 32768
  %a = and i32 %bits, 2147483647
  %abs = bitcast i32 %a to float
  %shifted = fadd float %abs, 5.000000e-01
  %shifted.bits = bitcast float %shifted to i32
  %subnormal = sub i32 %shifted.bits, 1056964608
  %last.at = lshr i32 %a, 13
  %last = and i32 %last.at, 1
  %biased = add i32 %a, -939524096
  %up = add i32 %biased, 4095
  %rounded = add i32 %up, %last
  %normal = lshr i32 %rounded, 13
  %is.small = icmp ult i32 %a, 947912704
  %finite = select i1 %is.small, i32 %subnormal, i32 %normal
  %is.large = icmp uge i32 %a, 1199566848
  %bounded = select i1 %is.large, i32 31744, i32 %finite
  %is.nan = icmp ugt i32 %a, 2139095040
  %chosen = select i1 %is.nan, i32 32256, i32 %bounded
  %result = or i32 %chosen, %sign
  %h = trunc i32 %result to i16
  %f = bitcast i16 %h to half
  ret half %f
}
"""
