"""An adversary: random rules, judged by the prover, fired by their matcher, evaluated: is one of them false and yet usable?"""
