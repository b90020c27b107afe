/**
 * Example backends of pipelines for pictures.
 *
 * <p>Starting points: {@link dev.nereid.examples.vision.ImagePreprocess}, which decodes and scales pictures;
 * {@link dev.nereid.examples.vision.Postprocess}, which gives scores their labels; and
 * {@link dev.nereid.examples.vision.Faces}, which sends requests to other models.
 */
@NullMarked
package dev.nereid.examples.vision;

import org.jspecify.annotations.NullMarked;
