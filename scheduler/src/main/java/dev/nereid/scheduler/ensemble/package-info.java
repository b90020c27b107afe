/**
 * Ensembles: requests whose outputs are computed by requests to other models. The data flow of one request, without
 * knowledge of how models are found.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.ensemble.EnsemblePlan}, what is known at the load; {@link
 * dev.nereid.scheduler.ensemble.EnsembleRun}, one request; {@link dev.nereid.scheduler.ensemble.StepModels}, the port to
 * the models of the steps.
 */
@NullMarked
package dev.nereid.scheduler.ensemble;

import org.jspecify.annotations.NullMarked;
