/** Requests that models send to each other. Starting point: {@link dev.nereid.api.call.CallChain}. */
@NullMarked
package dev.nereid.api.call;

import org.jspecify.annotations.NullMarked;
