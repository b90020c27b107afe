/**
 * Checks and loads ensembles, and provides the models of their steps to requests.
 *
 * <p>Starting points: {@link dev.nereid.server.ensemble.EnsembleLoader}; {@link
 * dev.nereid.server.ensemble.StepValidation}, the checks.
 */
@NullMarked
package dev.nereid.server.ensemble;

import org.jspecify.annotations.NullMarked;
