/** Measures Python models beside the smallest exchange with a Python program, and beside Java. */
@NullMarked
package dev.nereid.benchmarks.python;

import org.jspecify.annotations.NullMarked;
