// The instruction set that the *-inl.h headers are compiled for.
//
// PSAL_TARGET names it: baseline, v3 or v4. It is also the namespace of everything that those headers define, so that
// the linker cannot mix functions of two instruction sets. Without a choice, as in an editor, it is the baseline.
//
// PSAL_BEGIN_TARGET and PSAL_END_TARGET enclose the code to be compiled for it. Every #include stands outside of them:
// inline functions of the standard library exist once in the binary and must run on any machine.
//
// As in Google Highway, the include guard of an -inl.h header works per target: it is defined or undefined like
// PSAL_TARGET_TOGGLE. To include a header for a second target in one file, redefine PSAL_TARGET, define or undefine
// PSAL_TARGET_TOGGLE, and include it again.

#ifndef PSAL_SIMD_TARGET_H_
#define PSAL_SIMD_TARGET_H_

#ifndef PSAL_TARGET
#define PSAL_TARGET baseline
#endif

#define PSAL_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define PSAL_PUSH_TARGET(name) PSAL_PRAGMA(clang attribute push(__attribute__((target(name))), apply_to = function))
#define PSAL_POP_TARGET PSAL_PRAGMA(clang attribute pop)
#else
#define PSAL_PUSH_TARGET(name) PSAL_PRAGMA(GCC push_options) PSAL_PRAGMA(GCC target(name))
#define PSAL_POP_TARGET PSAL_PRAGMA(GCC pop_options)
#endif

#define PSAL_BEGIN_baseline
#define PSAL_END_baseline
#define PSAL_BEGIN_v3 PSAL_PUSH_TARGET("arch=x86-64-v3")
#define PSAL_END_v3 PSAL_POP_TARGET
#define PSAL_BEGIN_v4 PSAL_PUSH_TARGET("arch=x86-64-v4")
#define PSAL_END_v4 PSAL_POP_TARGET

// Bytes of its registers.
#define PSAL_REGISTER_baseline 16
#define PSAL_REGISTER_v3 32
#define PSAL_REGISTER_v4 64

#define PSAL_JOIN_TOKENS(a, b) a##b
#define PSAL_JOIN(a, b) PSAL_JOIN_TOKENS(a, b)
#define PSAL_BEGIN_TARGET PSAL_JOIN(PSAL_BEGIN_, PSAL_TARGET)
#define PSAL_END_TARGET PSAL_JOIN(PSAL_END_, PSAL_TARGET)
#define PSAL_REGISTER PSAL_JOIN(PSAL_REGISTER_, PSAL_TARGET)

#endif  // PSAL_SIMD_TARGET_H_
