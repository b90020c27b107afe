/** Servers and ceilings under load, as processes of their own. */
@NullMarked
package dev.nereid.benchmarks.process;

import org.jspecify.annotations.NullMarked;
