/**
 * Requests of a Python model to other models, and loads, unloads and readiness of models at its request.
 *
 * <p>Starting point: {@link dev.nereid.backend.python.call.ModelCalls}.
 */
@NullMarked
package dev.nereid.backend.python.call;

import org.jspecify.annotations.NullMarked;
