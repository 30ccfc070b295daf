#pragma once  // everything is in cuda_on_cpu.h
