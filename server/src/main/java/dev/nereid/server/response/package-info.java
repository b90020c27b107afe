/**
 * Responses that models hold of requests to other models, and what releases the ones that a model forgets. Starting point:
 * {@link dev.nereid.server.response.ResponseHolder}.
 */
@NullMarked
package dev.nereid.server.response;

import org.jspecify.annotations.NullMarked;
