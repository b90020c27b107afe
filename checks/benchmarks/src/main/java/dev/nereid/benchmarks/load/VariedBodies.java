package dev.nereid.benchmarks.load;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Requests that differ, sent round robin, so that header caches do not help. Immutable.
 *
 * @param bodies the requests; all of one input
 * @param id the placeholder in each of them that is replaced by a new number each time; empty if they have no id
 */
public record VariedBodies(List<InferBody> bodies, String id) {
    /** Of the length of the numbers that are written over it. */
    private static final String ID = "0".repeat(16);

    private static final String INPUT = "INPUT0";
    private static final long MEAN = 256;
    private static final int SHAPES = 256;

    /** The same 1 KB with another id each time. */
    public static final VariedBodies IDS =
            new VariedBodies(List.of(InferBody.of(INPUT, 1L, MEAN).withId(ID)), ID);

    /** Tensors of 0.5 to 1.5 KB, no two of one shape. */
    public static final VariedBodies MANY_SHAPES = new VariedBodies(
            LongStream.range(MEAN - SHAPES / 2, MEAN + SHAPES / 2)
                    .mapToObj(elements -> InferBody.of(INPUT, 1L, elements))
                    .toList(),
            "");

    public VariedBodies {
        bodies = List.copyOf(bodies);
    }

    /** Returns all bodies over HTTP, one after the other. */
    byte[] http() {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        bodies.forEach(body -> all.writeBytes(body.http()));
        return all.toByteArray();
    }

    /** Returns the arguments of {@code varied.lua}: the id, then for each body its length and that of its JSON. */
    List<String> arguments() {
        List<String> arguments = new ArrayList<>(List.of(id.isEmpty() ? "-" : id));
        bodies.forEach(body -> {
            arguments.add("" + body.http().length);
            arguments.add("" + body.headerLength());
        });
        return arguments;
    }
}
