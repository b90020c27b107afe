/** Benchmarks by JMH, each method in a process of its own, and the model that does nothing. */
@NullMarked
package dev.nereid.benchmarks.micro;

import org.jspecify.annotations.NullMarked;
