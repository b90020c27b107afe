/**
 * Ensembles of the server: their checks against the models of their steps, their loads, and the use of those models by
 * requests.
 *
 * <p>Starting points: {@link dev.nereid.server.ensemble.EnsembleLoader}; {@link
 * dev.nereid.server.ensemble.StepValidation}, the checks.
 */
@NullMarked
package dev.nereid.server.ensemble;

import org.jspecify.annotations.NullMarked;
