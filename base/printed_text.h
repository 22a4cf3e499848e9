// SPDX-License-Identifier: Apache-2.0
//
// A line of text with numbers and arrays of numbers in it, for a person to read: what a kernel
// prints, wherever it runs. The form is meant for eyes, not for programs: it may change. Pure, any
// thread.
#ifndef PHOBOS_BASE_PRINTED_TEXT_H_
#define PHOBOS_BASE_PRINTED_TEXT_H_

#include <string>
#include <string_view>

namespace phobos {

// `format` with a value in the place of each {TYPE}; "{{" stands for a brace. TYPE is f16, bf16,
// f32, f64, i8 to i64, u8 to u64 or bool, of an array with its sides behind it: {f32[4, 8]}. The
// i-th of `values` points to the elements of the i-th value, in row-major order, a bool as a byte.
//
// Numbers have the fewest digits that tell them from others of their type. Arrays look as NumPy's:
// [[1.0 2.0]
//  [3.5 4.0]]; of more than 1000 elements, the first and last three along each side. Their later
// lines are indented to where they begin.
//
// REQUIRES: format is well formed, and there is a value for each type in it.
std::string PrintedText(std::string_view format, const void* const* values);

}  // namespace phobos

#endif  // PHOBOS_BASE_PRINTED_TEXT_H_
