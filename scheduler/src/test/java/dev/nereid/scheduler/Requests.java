package dev.nereid.scheduler;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Builds requests whose inputs lie in memory that is checked for leaks. Confined to one thread. */
public final class Requests {
    private final ModelSettings model;
    private final TensorMemory memory;
    private final List<NamedTensor> inputs = new ArrayList<>();
    private final List<TensorBuffer> buffers = new ArrayList<>();
    private List<String> outputs;
    private final List<RequestedOutput> requested = new ArrayList<>();
    private long priority;
    private Optional<Sequence> sequence = Optional.empty();
    private long timeoutMicros;
    private OptionalLong deadline = OptionalLong.empty();
    private boolean callerOwnsInputs;
    private Runnable alsoReleased = () -> {};
    private String id = "";
    private long arrivedNanos;

    private Requests(ModelSettings model, TensorMemory memory) {
        this.model = model;
        this.memory = memory;
        this.outputs = model.outputs().stream().map(TensorSpec::name).toList();
    }

    public static Requests to(ModelSettings model, TensorMemory memory) {
        return new Requests(model, memory);
    }

    public Requests id(String changed) {
        id = changed;
        return this;
    }

    public Requests outputs(String... names) {
        outputs = List.of(names);
        return this;
    }

    /** Requests an output in memory of the client. */
    public Requests into(String output, MemorySegment memory) {
        requested.add(RequestedOutput.into(output, memory));
        return this;
    }

    /** Requests an output in memory of the client, anywhere. */
    public Requests into(String output, OutputTarget target) {
        requested.add(RequestedOutput.into(output, target));
        return this;
    }

    /** Requests an output wherever it lies. */
    public Requests inAnyPlace(String output) {
        requested.add(RequestedOutput.inAnyPlace(output));
        return this;
    }

    /** Requests the largest element in place of an output. */
    public Requests classified(String output) {
        requested.add(RequestedOutput.classified(output, 1));
        return this;
    }

    /** Sets the time of arrival. */
    public Requests arrivedAt(long nanos) {
        arrivedNanos = nanos;
        return this;
    }

    /** Adds an input that lies in memory of the caller. */
    public Requests input(String name, Tensor tensor) {
        inputs.add(new NamedTensor(name, tensor));
        return this;
    }

    /** Adds an input in memory that the caller may free once the request is complete. */
    public Requests inputOfCaller(String name, Tensor tensor) {
        callerOwnsInputs = true;
        return input(name, tensor);
    }

    public Requests deadline(long nanos) {
        deadline = OptionalLong.of(nanos);
        return this;
    }

    public Requests priority(long level) {
        priority = level;
        return this;
    }

    public Requests timeoutMicros(long micros) {
        timeoutMicros = micros;
        return this;
    }

    public Requests options(RequestOptions changed) {
        priority = changed.priority();
        timeoutMicros = changed.timeoutMicros();
        deadline = changed.deadlineNanos();
        sequence = changed.sequence();
        return this;
    }

    public Requests onRelease(Runnable action) {
        alsoReleased = action;
        return this;
    }

    /** Adds an input of consecutive numbers, as many as the shape has elements. */
    public Requests floats(String name, Shape shape, float first) {
        MemorySegment data = take(shape.byteSize(DataType.FP32));
        for (int i = 0; i < shape.elementCount(); i++) {
            data.setAtIndex(ValueLayout.JAVA_FLOAT, i, first + i);
        }
        inputs.add(new NamedTensor(name, Tensor.of(DataType.FP32, shape, data)));
        return this;
    }

    public Requests longs(String name, Shape shape, long... values) {
        MemorySegment data = take(Long.BYTES * (long) values.length);
        MemorySegment.copy(values, 0, data, ValueLayout.JAVA_LONG, 0, values.length);
        inputs.add(new NamedTensor(name, Tensor.of(DataType.INT64, shape, data)));
        return this;
    }

    public Requests strings(String name, Shape shape, String... texts) {
        MemorySegment data = take(byteSize(texts));
        write(data, texts);
        inputs.add(new NamedTensor(name, Tensor.of(DataType.BYTES, shape, data)));
        return this;
    }

    public static long byteSize(String... texts) {
        long size = 0;
        for (String text : texts) {
            size += Integer.BYTES + text.getBytes(StandardCharsets.UTF_8).length;
        }
        return size;
    }

    public static void write(MemorySegment data, String... texts) {
        long at = 0;
        for (String text : texts) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            data.set(ValueLayout.JAVA_INT_UNALIGNED, at, bytes.length);
            MemorySegment.copy(bytes, 0, data, ValueLayout.JAVA_BYTE, at + Integer.BYTES, bytes.length);
            at += Integer.BYTES + bytes.length;
        }
    }

    /** Creates a request of a number of items. */
    public CheckedRequest of(int items) {
        List<TensorBuffer> taken = List.copyOf(buffers);
        Runnable released = alsoReleased;
        Runnable release = () -> {
            taken.forEach(TensorBuffer::close);
            released.run();
        };
        return new CheckedRequest(
                new ModelVersion(model.name(), model.version()),
                id,
                RequestInputs.of(inputs, items, release),
                RequestOutputs.of(outputs, List.copyOf(requested)),
                Map.of(),
                new RequestOptions(priority, timeoutMicros, deadline, sequence, CallChain.NONE, callerOwnsInputs),
                arrivedNanos);
    }

    private MemorySegment take(long size) {
        TensorBuffer buffer = memory.allocate(size);
        buffers.add(buffer);
        return buffer.segment();
    }
}
