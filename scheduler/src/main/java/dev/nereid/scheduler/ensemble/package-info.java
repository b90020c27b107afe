/**
 * Ensembles: requests to other models compute the outputs of one request. The data flow of one request, without
 * knowledge of how models are found.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.ensemble.EnsemblePlan}, made at the load;
 * {@link dev.nereid.scheduler.ensemble.EnsembleRun}, one request; {@link dev.nereid.scheduler.ensemble.StepModels}, the
 * port to the models of the steps.
 */
@NullMarked
package dev.nereid.scheduler.ensemble;

import org.jspecify.annotations.NullMarked;
