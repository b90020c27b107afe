package dev.nereid.grpc.wire;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.Quoted;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.frontend.RequestParameters;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Assembles an {@link InferRequest} from a request message and copies its tensors once. Safe for use by any thread. */
public final class InferRequestAssembler {
    private static final int ALIGNMENT = 64;

    /** A dimension of variable size, which the server refuses with a separate text. */
    private static final long VARIABLE = -1;

    /**
     * The maximum memory of requests that are not counted. It is their memory besides their tensors; the limit on calls
     * bounds their number.
     */
    private static final int SMALL_BYTES = 16 << 10;

    /** The approximate heap bytes per byte of a message that consists of many small parts. */
    private static final long HEAP_FACTOR = 8;

    private final TensorMemory memory;
    private final SharedMemory sharedMemory;
    private final int maxInputBytes;

    /**
     * Creates an assembler.
     *
     * @param memory provides memory for the inputs
     * @param sharedMemory the shared memory regions of clients
     * @param maxInputBytes the maximum memory of one request's inputs, which exceeds their size in the message if they
     *     are written as varints
     */
    public InferRequestAssembler(TensorMemory memory, SharedMemory sharedMemory, int maxInputBytes) {
        this.memory = memory;
        this.sharedMemory = sharedMemory;
        this.maxInputBytes = maxInputBytes;
    }

    /**
     * Assembles a request. The message is not needed afterwards.
     *
     * @param model the model and version that the request names
     * @param context the deadline and headers of the gRPC call
     * @return the request; its memory belongs to the caller
     * @throws InferenceException if the request violates the protocol, or if there is no memory
     */
    public AssembledRequest assemble(InferMessage message, ModelRef model, CallContext context) {
        RequestParameters parameters = RequestParameterReader.read(message.parameters());
        Map<String, ParameterValue> backendParameters = context.headers().addTo(parameters.backendParameters());
        List<TensorBuffer> owned = new ArrayList<>(1);
        AssembledRequest assembled = null;
        try {
            List<InputContent> contents = contents(message, owned);
            List<RequestedOutput> outputs = outputs(message.outputs(), owned);
            SharedTensors shared = SharedTensors.of(outputs, owned);
            List<InputTensor> inputs = inputs(contents, allocateInputs(message, contents, owned));
            InferRequest request = new InferRequest(
                    model,
                    message.names().id(),
                    inputs,
                    outputs,
                    backendParameters,
                    parameters.options(context.deadlineNanos()),
                    release(message, owned));
            assembled = new AssembledRequest(
                    request, RequestParameterReader.emptyFinalResponse(message.parameters()), shared);
            return assembled;
        } finally {
            if (assembled == null) {
                release(owned).run();
            }
        }
    }

    /** Counts a message on the heap unless small; returns the task that ends that and releases the request's memory. */
    private Runnable release(InferMessage message, List<TensorBuffer> owned) {
        Runnable release = release(owned);
        if (message.bytes().length() <= SMALL_BYTES) {
            return release;
        }
        long others = message.bytes().length();
        for (ByteRange range : message.rawContents()) {
            others -= range.length();
        }
        for (InferMessage.Input input : message.inputs()) {
            for (ByteRange range : input.contents()) {
                others -= range.length();
            }
        }
        if (others <= SMALL_BYTES) {
            return release;
        }
        long bytes = HEAP_FACTOR * others;
        memory.reserveBytes(bytes);
        return () -> {
            memory.releaseBytes(bytes);
            release.run();
        };
    }

    private static Runnable release(List<TensorBuffer> owned) {
        return switch (owned.size()) {
            case 0 -> () -> {};
            case 1 -> owned.getFirst()::close;
            default -> () -> owned.forEach(TensorBuffer::close);
        };
    }

    /** Allocates memory for the inputs with data in the message. */
    private MemorySegment allocateInputs(InferMessage message, List<InputContent> contents, List<TensorBuffer> owned) {
        long size = 0;
        long space = 0;
        for (InputContent content : contents) {
            if (content instanceof InputContent.Inline inline) {
                size += inline.byteSize();
                space += aligned(inline.byteSize());
            }
        }
        if (size > maxInputBytes) {
            throw InferenceException.tooLarge(
                    "inputs for model '" + Quoted.text(message.names().model()) + "' take " + size
                            + " bytes, which exceeds the maximum allowed value of " + maxInputBytes
                            + " bytes. Use --grpc-max-input-size to increase the limit.");
        }
        if (space == 0) {
            return MemorySegment.NULL;
        }
        TensorBuffer buffer = memory.allocate(space);
        owned.add(buffer);
        return buffer.segment();
    }

    private static List<InputTensor> inputs(List<InputContent> contents, MemorySegment memory) {
        List<InputTensor> inputs = new ArrayList<>(contents.size());
        long at = 0;
        for (InputContent content : contents) {
            MemorySegment data;
            MemoryPlace place = MemoryPlace.HOST;
            switch (content) {
                case InputContent.Inline inline -> {
                    data = memory.asSlice(at, inline.byteSize());
                    inline.writeTo(data);
                    at += aligned(inline.byteSize());
                }
                case InputContent.Shared(InferMessage.Input _, TensorBuffer lease) -> {
                    data = lease.segment();
                    place = lease.place();
                }
            }
            InferMessage.Input input = content.input();
            inputs.add(
                    InputTensor.of(input.name(), input.datatype(), input.shape().toArray(), data, place));
        }
        return inputs;
    }

    private static long aligned(long size) {
        return (size + ALIGNMENT - 1) & -ALIGNMENT;
    }

    private List<InputContent> contents(InferMessage message, List<TensorBuffer> owned) {
        List<InputContent> contents = new ArrayList<>(message.inputs().size());
        int nextRaw = 0;
        for (InferMessage.Input input : message.inputs()) {
            checkSize(input);
            Optional<TensorParameters.Region> region = region(message, input);
            if (region.isPresent()) {
                TensorBuffer lease = region.get().lease(sharedMemory);
                owned.add(lease);
                contents.add(new InputContent.Shared(input, lease));
            } else if (!input.contents().isEmpty()) {
                contents.add(typed(message, input));
            } else if (nextRaw < message.rawContents().size()) {
                contents.add(new InputContent.Raw(
                        input, message.bytes(), message.rawContents().get(nextRaw++)));
            } else {
                throw invalid("unable to find data for input tensor '" + Quoted.text(input.name()) + "' for model '"
                        + Quoted.text(message.names().model()) + "' in request.");
            }
        }
        return contents;
    }

    /** Refuses negative dimensions and shapes with a byte size beyond a {@code long}. The server checks the rest. */
    private static void checkSize(InferMessage.Input input) {
        long size = DataType.ofName(input.datatype()).map(DataType::byteSize).orElse(1);
        size = Math.max(size, 1);
        for (long dim : input.shape().toArray()) {
            if (dim < VARIABLE) {
                throw invalid("tensor '" + Quoted.text(input.name()) + "' contains an invalid dimension "
                        + Quoted.dims(input.shape().toArray()));
            }
            if (dim > 0 && size > Long.MAX_VALUE / dim) {
                throw invalid("byte size for tensor '" + Quoted.text(input.name()) + "' exceeds maximum size of "
                        + Long.MAX_VALUE);
            }
            size *= Math.max(dim, 1);
        }
    }

    private static Optional<TensorParameters.Region> region(InferMessage message, InferMessage.Input input) {
        if (input.parameters().isEmpty()) {
            return Optional.empty();
        }
        Optional<TensorParameters.Region> region = TensorParameters.region(input.name(), input.parameters());
        if (region.isPresent() && !input.contents().isEmpty()) {
            throw invalid("unexpected 'content' provided when using shared memory for input tensor '"
                    + Quoted.text(input.name()) + "' for model '"
                    + Quoted.text(message.names().model()) + "'");
        }
        return region;
    }

    private static InputContent typed(InferMessage message, InferMessage.Input input) {
        if (!message.rawContents().isEmpty()) {
            throw invalid("contents field must not be specified when using raw_input_contents for '"
                    + Quoted.text(input.name()) + "' for model '"
                    + Quoted.text(message.names().model()) + "'");
        }
        return new InputContent.Typed(
                input, TypedContents.read(message.bytes(), message.names().model(), input));
    }

    private List<RequestedOutput> outputs(List<InferMessage.Output> outputs, List<TensorBuffer> owned) {
        if (outputs.isEmpty()) {
            return List.of();
        }
        List<RequestedOutput> requested = new ArrayList<>(outputs.size());
        for (InferMessage.Output output : outputs) {
            requested.add(
                    output.parameters().isEmpty() ? RequestedOutput.of(output.name()) : requestedOutput(output, owned));
        }
        return requested;
    }

    private RequestedOutput requestedOutput(InferMessage.Output output, List<TensorBuffer> owned) {
        long classes = TensorParameters.classes(output.parameters());
        Optional<TensorParameters.Region> region = TensorParameters.region(output.name(), output.parameters());
        if (region.isEmpty()) {
            return new RequestedOutput(output.name(), classes, Optional.empty(), false);
        }
        if (classes > 0) {
            throw invalid("output can't set both 'shared_memory_region' and 'classification'");
        }
        TensorBuffer lease = region.get().lease(sharedMemory);
        owned.add(lease);
        return RequestedOutput.into(output.name(), new OutputTarget(lease.segment(), lease.place()));
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
