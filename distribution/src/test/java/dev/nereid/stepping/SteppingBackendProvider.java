package dev.nereid.stepping;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Provides the backend {@code stepping} for iterative sequences: a text of 1 KB in each step, {@code COUNT} in all, with
 * its number and the model's parameter {@code label} in front. The server keeps the number, as the state {@code NEXT}.
 * The parameter {@code ends} names a file that gets a line for each sequence that ended before its last text: why.
 */
public final class SteppingBackendProvider implements BackendProvider {
    private static final int TEXT_BYTES = 1_000;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public String name() {
        return "stepping";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> {
            String label = model.parameters().required("label");
            Path ends = Path.of(model.parameters().required("ends"));
            return place -> new Instance(label, ends);
        };
    }

    private record Instance(String label, Path ends) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            for (InferenceRequest request : batch.requests()) {
                if (!request.isNullRequest()) {
                    step(request);
                }
            }
        }

        @Override
        public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
            try {
                Files.writeString(ends, reason + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private void step(InferenceRequest request) {
            int number = request.requireInput("AT").data().get(INT, 0);
            int count = request.requireInput("COUNT").data().get(INT, 0);
            Tensor next = request.state("NEXT").allocate(DataType.INT32, Shape.of(1, 1));
            next.data().set(INT, 0, number + 1);
            ResponseSender sender = request.sender();
            InferenceResponse response = sender.newResponse();
            MemorySegment text = response.allocateBytes("TEXT", Shape.of(1, 1), Integer.BYTES + TEXT_BYTES)
                    .data();
            byte[] head = (number + label).getBytes(StandardCharsets.UTF_8);
            text.set(INT, 0, TEXT_BYTES);
            text.asSlice(Integer.BYTES).fill((byte) '.');
            MemorySegment.copy(head, 0, text, ValueLayout.JAVA_BYTE, Integer.BYTES, head.length);
            if (number + 1 == count) {
                sender.complete(response);
            } else {
                sender.send(response);
                request.reschedule();
            }
        }
    }
}
