/** Inference requests over HTTP: reading, submission and responses. */
@NullMarked
package dev.nereid.http.infer;

import org.jspecify.annotations.NullMarked;
