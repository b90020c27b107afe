/** Load generators, their requests and the checks of responses. */
@NullMarked
package dev.nereid.benchmarks.load;

import org.jspecify.annotations.NullMarked;
