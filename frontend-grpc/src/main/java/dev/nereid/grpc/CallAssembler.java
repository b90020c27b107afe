package dev.nereid.grpc;

import dev.nereid.api.InferCall;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.TensorBuffer;
import dev.nereid.api.TensorMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Makes a call of a request message: checks what the protocol demands of it, and moves its tensors into one piece of
 * pooled memory, once. Safe for use by any thread.
 */
final class CallAssembler {
    private static final int ALIGNMENT = 64;

    private final TensorMemory memory;
    private final int maxInputBytes;

    /**
     * Creates an assembler.
     *
     * @param memory where the inputs are to lie
     * @param maxInputBytes how much memory the inputs of one call may take, which is more than they take in the message
     *     when they are written as numbers of variable length
     */
    CallAssembler(TensorMemory memory, int maxInputBytes) {
        this.memory = memory;
        this.maxInputBytes = maxInputBytes;
    }

    /**
     * Makes a call. The message is not needed afterwards.
     *
     * @param message the request
     * @param model the model and version that the request names
     * @param deadlineNanos when the client loses interest
     * @return the call, whose memory belongs to the caller
     * @throws InferenceException if the request is not as the protocol demands, or if there is no memory
     */
    InferCall assemble(InferMessage message, ModelRef model, OptionalLong deadlineNanos) {
        RequestParameters parameters = RequestParameters.read(message.parameters());
        List<Content> contents = contents(message);
        List<RequestedOutput> outputs = outputs(message.outputs());
        long size = 0;
        long space = 0;
        for (Content content : contents) {
            size += content.byteSize();
            space += aligned(content.byteSize());
        }
        if (size > maxInputBytes) {
            throw invalid("inputs for model '" + message.model() + "' take " + size
                    + " bytes, which exceeds the maximum allowed value of " + maxInputBytes + " bytes");
        }
        Optional<TensorBuffer> buffer = space == 0 ? Optional.empty() : Optional.of(memory.allocate(space));
        Runnable release = buffer.<Runnable>map(owned -> owned::close).orElse(() -> {});
        try {
            List<InputTensor> inputs =
                    inputs(contents, buffer.map(TensorBuffer::segment).orElse(MemorySegment.NULL));
            return new InferCall(
                    model,
                    message.id(),
                    inputs,
                    outputs,
                    parameters.others(),
                    parameters.options(deadlineNanos),
                    release);
        } catch (Throwable failure) {
            release.run();
            throw failure;
        }
    }

    private static List<InputTensor> inputs(List<Content> contents, MemorySegment memory) {
        List<InputTensor> inputs = new ArrayList<>(contents.size());
        long at = 0;
        for (Content content : contents) {
            MemorySegment data = memory.asSlice(at, content.byteSize());
            content.writeTo(data);
            InferMessage.Input input = content.input();
            inputs.add(
                    InputTensor.of(input.name(), input.datatype(), input.shape().toArray(), data, MemoryPlace.HOST));
            at += aligned(content.byteSize());
        }
        return inputs;
    }

    private static long aligned(long size) {
        return (size + ALIGNMENT - 1) & -ALIGNMENT;
    }

    private static List<Content> contents(InferMessage message) {
        List<Content> contents = new ArrayList<>(message.inputs().size());
        int nextRaw = 0;
        for (InferMessage.Input input : message.inputs()) {
            checkSize(input);
            checkSharedMemory(message, input);
            if (!input.contents().isEmpty()) {
                contents.add(typed(message, input));
            } else if (nextRaw < message.rawContents().size()) {
                contents.add(new Content.Raw(
                        input, message.bytes(), message.rawContents().get(nextRaw++)));
            } else {
                throw invalid("unable to find data for input tensor '" + input.name() + "' for model '"
                        + message.model() + "' in request.");
            }
        }
        return contents;
    }

    /** Refuses shapes whose size no number can tell; everything else about shapes is for the server to check. */
    private static void checkSize(InferMessage.Input input) {
        long size = DataType.ofName(input.datatype()).map(DataType::byteSize).orElse(1);
        size = Math.max(size, 1);
        for (long dim : input.shape().toArray()) {
            if (dim > 0 && size > Long.MAX_VALUE / dim) {
                throw invalid("byte size for tensor '" + input.name() + "' exceeds maximum size of " + Long.MAX_VALUE);
            }
            size *= Math.max(dim, 1);
        }
    }

    private static void checkSharedMemory(InferMessage message, InferMessage.Input input) {
        if (input.parameters().isEmpty()) {
            return;
        }
        Optional<String> region = TensorParameters.region(input.name(), input.parameters());
        if (region.isPresent()) {
            if (!input.contents().isEmpty()) {
                throw invalid("unexpected 'content' provided when using shared memory for input tensor '" + input.name()
                        + "' for model '" + message.model() + "'");
            }
            throw unknownRegion(region.get());
        }
    }

    private static Content typed(InferMessage message, InferMessage.Input input) {
        if (!message.rawContents().isEmpty()) {
            throw invalid("contents field must not be specified when using raw_input_contents for '" + input.name()
                    + "' for model '" + message.model() + "'");
        }
        return new Content.Typed(input, TypedContents.read(message.bytes(), message.model(), input));
    }

    private static List<RequestedOutput> outputs(List<InferMessage.Output> outputs) {
        if (outputs.isEmpty()) {
            return List.of();
        }
        List<RequestedOutput> wanted = new ArrayList<>(outputs.size());
        for (InferMessage.Output output : outputs) {
            checkParameters(output.name(), output.parameters());
            wanted.add(RequestedOutput.of(output.name()));
        }
        return wanted;
    }

    private static void checkParameters(String output, Map<String, WireParameter> parameters) {
        if (parameters.isEmpty()) {
            return;
        }
        boolean classes = TensorParameters.isClassification(parameters);
        Optional<String> region = TensorParameters.region(output, parameters);
        if (classes && region.isPresent()) {
            throw invalid("output can't set both 'shared_memory_region' and 'classification'");
        }
        if (region.isPresent()) {
            throw unknownRegion(region.get());
        }
        if (classes) {
            throw new InferenceException(
                    ErrorCode.UNSUPPORTED, "classification is not supported, output '" + output + "' asks for it");
        }
    }

    private static InferenceException unknownRegion(String region) {
        return new InferenceException(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '" + region + "'");
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    /** What an input holds, still in the message. */
    private sealed interface Content {
        InferMessage.Input input();

        long byteSize();

        void writeTo(MemorySegment target);

        /** Bytes in the layout of tensors. */
        record Raw(InferMessage.Input input, MessageBytes bytes, ByteRange range) implements Content {
            @Override
            public long byteSize() {
                return range.length();
            }

            @Override
            public void writeTo(MemorySegment target) {
                bytes.copyTo(range, target);
            }
        }

        /** Elements written one by one. */
        record Typed(InferMessage.Input input, TypedContents contents) implements Content {
            @Override
            public long byteSize() {
                return contents.byteSize();
            }

            @Override
            public void writeTo(MemorySegment target) {
                contents.writeTo(target);
            }
        }
    }
}
