/**
 * Outputs as classes. The largest elements of an output, with their indices and labels, replace the output.
 *
 * <p>Starting points: {@link dev.nereid.server.classification.Classifier}, created for each model version, and
 * {@link dev.nereid.server.classification.LabelFiles}, which reads the labels when a model is loaded.
 */
@NullMarked
package dev.nereid.server.classification;

import org.jspecify.annotations.NullMarked;
