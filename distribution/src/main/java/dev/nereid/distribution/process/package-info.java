/** The process: signals, exit codes, shutdown and out-of-memory exit. */
@NullMarked
package dev.nereid.distribution.process;

import org.jspecify.annotations.NullMarked;
