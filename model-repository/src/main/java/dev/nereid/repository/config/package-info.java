/**
 * Model configurations: reading, completion, normalization, validation and conversion.
 *
 * <p>Starting points, in the order in which a load uses them: {@link dev.nereid.repository.config.ModelConfigReader},
 * {@link dev.nereid.repository.config.ConfigCompletion}, {@link dev.nereid.repository.config.ConfigNormalization},
 * {@link dev.nereid.repository.config.ConfigValidation} and
 * {@link dev.nereid.repository.config.ModelConfigJson}. All of them are functions without state.
 */
@NullMarked
package dev.nereid.repository.config;

import org.jspecify.annotations.NullMarked;
