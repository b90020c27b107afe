/**
 * Responses that models hold of other models, and the release of forgotten ones. Starting point:
 * {@link dev.nereid.server.response.ResponseHolder}.
 */
@NullMarked
package dev.nereid.server.response;

import org.jspecify.annotations.NullMarked;
