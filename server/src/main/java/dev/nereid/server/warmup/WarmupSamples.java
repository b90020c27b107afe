package dev.nereid.server.warmup;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelWarmup;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.random.RandomGenerator;

/**
 * Warm-up samples of a model, with input content that all instances share. Owns that memory: to be closed when every
 * instance is warm. Confined to the thread that loads. {@link dev.nereid.scheduler.instance.Warmup} executes them.
 */
public final class WarmupSamples implements AutoCloseable {
    /** More executions than this make nothing warmer, and the load would not end. */
    private static final int MAX_EXECUTIONS = 100_000;

    private final ModelSettings model;
    private final List<NamedTensor> first;
    private final Path directory;
    private final TensorMemory memory;
    private final RandomGenerator random;
    private final RequestChecks checks;
    private final List<Warmup.Sample> samples = new ArrayList<>();
    private final List<TensorBuffer> buffers = new ArrayList<>();

    private WarmupSamples(
            RequestChecks checks,
            ModelSettings model,
            List<NamedTensor> first,
            Path directory,
            TensorMemory memory,
            RandomGenerator random) {
        this.model = model;
        this.first = first;
        this.directory = directory;
        this.memory = memory;
        this.random = random;
        this.checks = checks;
    }

    /**
     * Reads the warm-up samples of a model.
     *
     * @param config the completed configuration
     * @param model the same configuration, as schedulers see it
     * @param first the control inputs and states of a first request of a sequence; they are added to samples that do not
     *     give them; empty for a model without sequences
     * @param memory the memory for the content of inputs
     * @return the samples, owned by the caller
     * @throws InferenceException if a sample is wrong, a file is missing, or there is no memory; nothing is kept then
     */
    public static WarmupSamples read(
            ModelConfig config,
            RequestChecks checks,
            ModelSettings model,
            List<NamedTensor> first,
            Path directory,
            TensorMemory memory,
            RandomGenerator random) {
        WarmupSamples samples = new WarmupSamples(checks, model, first, directory, memory, random);
        boolean read = false;
        try {
            for (ModelWarmup setting : config.getModelWarmupList()) {
                if (setting.getBatchSize() != 0) {
                    samples.add(setting);
                }
            }
            read = true;
            return samples;
        } finally {
            if (!read) {
                samples.close();
            }
        }
    }

    /**
     * Checks that the files of the samples are there, without reading them.
     *
     * @param config the completed configuration
     * @throws InferenceException if one is missing, is no file, or lies elsewhere
     */
    public static void checkFiles(ModelConfig config, Path directory) {
        for (ModelWarmup setting : config.getModelWarmupList()) {
            for (ModelWarmup.Input input : setting.getInputsMap().values()) {
                if (setting.getBatchSize() != 0 && input.hasInputDataFile()) {
                    WarmupFile.find(directory, input.getInputDataFile());
                }
            }
        }
    }

    /** Returns the samples, in the order of the configuration. */
    public List<Warmup.Sample> samples() {
        return List.copyOf(samples);
    }

    /** Releases the content of the inputs. */
    @Override
    public void close() {
        buffers.forEach(TensorBuffer::close);
        buffers.clear();
    }

    /** Adds a sample; every error has its name. */
    private void add(ModelWarmup setting) {
        try {
            samples.add(sample(setting));
        } catch (InferenceException e) {
            throw new InferenceException(
                    e.code(), "failed to run warmup sample '" + setting.getName() + "': " + e.publicMessage() + "; ");
        }
    }

    private Warmup.Sample sample(ModelWarmup setting) {
        if (Integer.toUnsignedLong(setting.getCount()) > MAX_EXECUTIONS) {
            throw invalid("count " + Integer.toUnsignedString(setting.getCount()) + " for '" + model.name()
                    + "', max allowed is " + MAX_EXECUTIONS);
        }
        long batchSize = Integer.toUnsignedLong(setting.getBatchSize());
        if (batchSize > Math.max(model.maxBatchSize(), 1)) {
            throw invalid(
                    "batch size " + batchSize + " for '" + model.name() + "', max allowed is " + model.maxBatchSize());
        }
        List<InputTensor> known = new ArrayList<>();
        List<NamedTensor> unknown = new ArrayList<>();
        for (Map.Entry<String, ModelWarmup.Input> input : new TreeMap<>(setting.getInputsMap()).entrySet()) {
            add(input.getKey(), input.getValue(), known, unknown);
        }
        CheckedRequest request = request(setting, known, unknown);
        List<CheckedRequest> batch = Collections.nCopies((int) batchSize, request);
        long executions = Math.max(Integer.toUnsignedLong(setting.getCount()), 1);
        return new Warmup.Sample(setting.getName(), (int) executions, () -> batch);
    }

    private void add(String name, ModelWarmup.Input input, List<InputTensor> known, List<NamedTensor> unknown) {
        DataType type = type(name, input.getDataType());
        long[] dims = input.getDimsList().stream().mapToLong(Long::longValue).toArray();
        MemorySegment data = content(name, input, type, dims);
        Optional<TensorSpec> spec = model.input(name);
        boolean batched = model.batches() && !(spec.isPresent() && spec.get().is(TensorSpec.Trait.SHAPE_TENSOR));
        Shape shape = batched ? Shape.of(dims).prepend(1) : Shape.of(dims);
        if (spec.isPresent()) {
            known.add(InputTensor.of(name, type.name(), shape.toArray(), data, MemoryPlace.HOST));
        } else {
            unknown.add(new NamedTensor(name, Tensor.of(name, type, shape, data, MemoryPlace.HOST)));
        }
    }

    private MemorySegment content(String name, ModelWarmup.Input input, DataType type, long[] dims) {
        for (long dim : dims) {
            if (dim < 0) {
                throw invalid(
                        "warmup setting expects all variable-size dimensions are specified for input '" + name + "'");
            }
        }
        // An empty string is its length alone, which takes four bytes.
        long byteSize = InputTensor.byteSize(
                name, type == DataType.BYTES ? DataType.UINT32 : type, checks.storedDims(name, dims));
        return switch (input.getInputDataTypeCase()) {
            case ZERO_DATA -> keep(memory.allocate(byteSize)).fill((byte) 0);
            case RANDOM_DATA -> {
                MemorySegment data = keep(memory.allocate(byteSize)).fill((byte) 0);
                if (type.isFixedSize()) {
                    RandomContent.fill(data, type, random);
                }
                yield data;
            }
            case INPUT_DATA_FILE -> file(input.getInputDataFile(), type, byteSize, dims);
            case INPUTDATATYPE_NOT_SET ->
                throw invalid("warmup setting expects input '" + name + "' to have input_data_type set");
        };
    }

    private MemorySegment file(String name, DataType type, long byteSize, long[] dims) {
        WarmupFile file = WarmupFile.find(directory, name);
        if (type.isFixedSize()) {
            return keep(file.read(byteSize, memory));
        }
        return WarmupFile.first(keep(file.read(file.size(), memory)), InputTensor.elementCount(name, dims));
    }

    private MemorySegment keep(TensorBuffer buffer) {
        buffers.add(buffer);
        return buffer.segment();
    }

    /** Creates the request that all of an execution equal. Inputs that the configuration does not declare are last. */
    private CheckedRequest request(ModelWarmup setting, List<InputTensor> known, List<NamedTensor> unknown) {
        CheckedRequest checked = checks.check(
                new InferRequest(
                        new ModelRef(model.name(), model.version()),
                        setting.getName(),
                        known,
                        List.of(),
                        Map.of(),
                        RequestOptions.DEFAULT,
                        () -> {}),
                0);
        List<NamedTensor> inputs = new ArrayList<>(checked.inputs());
        inputs.addAll(unknown);
        for (NamedTensor added : first) {
            if (!setting.containsInputs(added.name())) {
                inputs.add(added);
            }
        }
        return checked.withInputs(RequestInputs.of(inputs, checked.batchSize(), checked::releaseInputs));
    }

    private static DataType type(String name, inference.DataType type) {
        for (DataType candidate : DataType.values()) {
            if (candidate.configName().equals(type.name())) {
                return candidate;
            }
        }
        throw invalid("input '" + name + "' must specify 'data_type'");
    }

    private static InferenceException invalid(String problem) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, problem);
    }

    /**
     * Fills memory with random elements of a fixed-size data type. Whole numbers use all bits, fractions lie between 0
     * and 1. Static functions only.
     */
    private static final class RandomContent {
        private static final ValueLayout.OfShort SHORT =
                ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
        private static final ValueLayout.OfFloat FLOAT =
                ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
        private static final ValueLayout.OfDouble DOUBLE =
                ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

        private RandomContent() {}

        /**
         * Fills memory with elements.
         *
         * @param memory as many bytes as the elements take
         * @param type their type, of a fixed size
         */
        static void fill(MemorySegment memory, DataType type, RandomGenerator random) {
            for (long at = 0; at < memory.byteSize(); at += type.byteSize()) {
                switch (type) {
                    case FP16 -> memory.set(SHORT, at, Float.floatToFloat16(random.nextFloat()));
                    case BF16 ->
                        memory.set(SHORT, at, (short) (Float.floatToIntBits(random.nextFloat()) >>> Short.SIZE));
                    case FP32 -> memory.set(FLOAT, at, random.nextFloat());
                    case FP64 -> memory.set(DOUBLE, at, random.nextDouble());
                    case BOOL -> memory.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt(2));
                    case UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64 -> {
                        byte[] bits = new byte[type.byteSize()];
                        random.nextBytes(bits);
                        MemorySegment.copy(bits, 0, memory, ValueLayout.JAVA_BYTE, at, bits.length);
                    }
                    case BYTES ->
                        throw new IllegalArgumentException("type: BYTES (expected: elements of a fixed size)");
                }
            }
        }
    }
}
