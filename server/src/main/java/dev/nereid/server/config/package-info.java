/**
 * Model configurations: reading, completion, normalization, validation and conversion.
 *
 * <p>Starting points, in the order in which a load uses them: {@link dev.nereid.server.config.ModelConfigReader},
 * {@link dev.nereid.server.config.ConfigCompletion}, {@link dev.nereid.server.config.ConfigNormalization},
 * {@link dev.nereid.server.config.ConfigValidation}, {@link dev.nereid.server.lifecycle.ModelSettingsReader} and
 * {@link dev.nereid.server.config.ModelConfigJson}. All of them are functions without state.
 */
@NullMarked
package dev.nereid.server.config;

import org.jspecify.annotations.NullMarked;
