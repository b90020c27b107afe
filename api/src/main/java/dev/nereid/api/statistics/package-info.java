/** Statistics of model versions, as front ends and metrics report them. */
@NullMarked
package dev.nereid.api.statistics;

import org.jspecify.annotations.NullMarked;
