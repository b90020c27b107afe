/** Benchmarks by JMH, each method in a separate process, and the model that does nothing. */
@NullMarked
package dev.nereid.benchmarks.micro;

import org.jspecify.annotations.NullMarked;
