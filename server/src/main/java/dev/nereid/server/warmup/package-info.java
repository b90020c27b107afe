/** Warm-up of model instances: samples and their content. */
@NullMarked
package dev.nereid.server.warmup;

import org.jspecify.annotations.NullMarked;
