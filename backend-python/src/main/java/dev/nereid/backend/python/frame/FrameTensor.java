package dev.nereid.backend.python.frame;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;

/**
 * A tensor of a frame.
 *
 * @param name the index of its name, or the length of the name that follows
 * @param shape its dimensions, with that of the batch; none is negative
 * @param segment the number of the segment of shared memory that has the data; 0 for data within the frame
 * @param offset where the data begins in the segment; not checked yet
 * @param size the size of the data in bytes: that of type and shape, for {@link DataType#BYTES} at least four for each element
 * @param data the data within the frame, valid as long as the frame; {@link MemorySegment#NULL} for data in a segment
 */
public record FrameTensor(
        int name,
        DataType type,
        Shape shape,
        long elements,
        long segment,
        long offset,
        long size,
        MemorySegment data) {}
