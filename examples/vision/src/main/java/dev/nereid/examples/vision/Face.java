package dev.nereid.examples.vision;

import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * A face in a picture. Immutable.
 *
 * @param score how sure the detector is, from 0 to 1
 */
record Face(Box box, float score) {
    /** Boxes that overlap more than this are of the same face. */
    private static final double MAX_OVERLAP = 0.3;

    private static final int MIN_PIXELS = 16;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /**
     * Selects the faces among the boxes of a detector, from left to right.
     *
     * @param scores FP32 [1,n,2]: the probabilities of no face and of a face
     * @param boxes FP32 [1,n,4]: left, top, right and bottom, as parts of width and height
     * @param picture the picture that was searched
     * @param minScore the lowest score of a face
     * @param limit the largest number of faces; the best ones are selected
     */
    static List<Face> select(Tensor scores, Tensor boxes, Picture picture, float minScore, int limit) {
        List<Face> candidates = new ArrayList<>();
        for (long i = 0; i < scores.shape().dim(1); i++) {
            float score = scores.data().get(FLOAT, (2 * i + 1) * Float.BYTES);
            if (score >= minScore) {
                candidates.add(new Face(box(boxes, i, picture), score));
            }
        }
        candidates.sort(Comparator.comparingDouble(face -> -face.score));
        List<Face> faces = new ArrayList<>();
        for (Face candidate : candidates) {
            if (faces.size() < limit
                    && candidate.box.area() >= MIN_PIXELS
                    && faces.stream().allMatch(face -> face.box.overlap(candidate.box) <= MAX_OVERLAP)) {
                faces.add(candidate);
            }
        }
        faces.sort(Comparator.comparingDouble(face -> face.box.left()));
        return faces;
    }

    private static Box box(Tensor boxes, long index, Picture picture) {
        long at = 4 * Float.BYTES * index;
        return new Box(
                        boxes.data().get(FLOAT, at) * picture.width(),
                        boxes.data().get(FLOAT, at + Float.BYTES) * picture.height(),
                        boxes.data().get(FLOAT, at + 2 * Float.BYTES) * picture.width(),
                        boxes.data().get(FLOAT, at + 3 * Float.BYTES) * picture.height())
                .within(picture);
    }
}
