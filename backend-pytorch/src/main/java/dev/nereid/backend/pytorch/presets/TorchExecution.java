package dev.nereid.backend.pytorch.presets;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.GenericDict;
import org.bytedeco.pytorch.GenericDictIterator;
import org.bytedeco.pytorch.GenericList;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.Tuple;
import org.bytedeco.pytorch.TupleElements;
import org.bytedeco.pytorch.Type;
import org.bytedeco.pytorch.global.torch;

/**
 * Executes a module, one call at a time. Confined to its user, which may change between calls.
 *
 * <p>Inputs are read in place. An output may lie in an input: see {@link #run}.
 */
public final class TorchExecution implements AutoCloseable {
    /** The depth to which containers are read: the nesting of a result is that of its type in the script. */
    static final int MAX_DEPTH = 32;

    /** The largest number of values in one list, and of all outputs of a result: they are objects of the heap. */
    private static final int MAX_VALUES = 1_000_000;

    private final JitModule module;
    private final List<TorchArgument> arguments;
    private final ExecutionMode mode;
    private final int threads;
    private final boolean copiesOutputs;
    private final boolean copiesInputs;
    private final List<String> dictionary;
    private final IValueVector values = new IValueVector();
    private boolean isFirst = true;

    TorchExecution(
            JitModule module,
            TorchSchema schema,
            ExecutionMode mode,
            int threads,
            boolean copiesOutputs,
            boolean copiesInputs,
            List<String> dictionary) {
        this.module = module;
        arguments = schema.arguments();
        this.mode = mode;
        this.threads = threads;
        this.copiesOutputs = copiesOutputs;
        this.copiesInputs = copiesInputs;
        this.dictionary = List.copyOf(dictionary);
    }

    /**
     * Executes the module.
     *
     * @param inputs the values of the arguments in their order, or of the keys of the dictionary; in memory outside the
     *     heap, not to be changed until the outputs are closed, since these may lie in it
     * @return the values of the result in their order, owned by the caller: the values in tuples, lists and
     *     dictionaries follow one another
     * @throws TorchException if PyTorch or the script fails
     * @throws BackendException if texts of an input are cut short
     */
    public List<TorchOutput> run(List<Tensor> inputs) throws TorchException {
        List<TorchOutput> outputs = new ArrayList<>();
        if (torch.get_num_threads() != threads) { // of this thread: the read sets it
            torch.set_num_threads(threads);
        }
        boolean complete = false;
        try (ModeGuard _ = mode.enter()) {
            pass(inputs);
            try (IValue result = module.forward(values)) {
                add(result, "", 0, outputs);
            }
            if (isFirst) {
                isFirst = false;
                Natives.endWithoutDestructors();
            }
            complete = true;
            return outputs;
        } catch (BackendException e) { // about an input
            throw e;
        } catch (RuntimeException e) {
            throw TorchException.of(e);
        } finally {
            values.resize(0);
            if (!complete) {
                outputs.forEach(TorchOutput::close);
            }
        }
    }

    private void pass(List<Tensor> inputs) {
        if (!dictionary.isEmpty()) {
            values.resize(1);
            try (IValue value = Dictionaries.of(dictionary, inputs, this::tensor)) {
                values.put(0, value);
            }
            return;
        }
        values.resize(inputs.size());
        for (int i = 0; i < inputs.size(); i++) {
            try (IValue value = value(arguments.get(i), inputs.get(i))) {
                values.put(i, value);
            }
        }
    }

    private IValue value(TorchArgument argument, Tensor input) {
        if (input.type() == DataType.BYTES) {
            return Strings.list(input);
        }
        try (org.bytedeco.pytorch.Tensor tensor = tensor(input)) {
            IValue value = new IValue(tensor);
            if (argument.kind() != TorchArgument.Kind.TENSORS) {
                return value;
            }
            try (value;
                    GenericList list = Dictionaries.tensorList()) {
                list.push_back(value);
                return new IValue(list);
            }
        }
    }

    private org.bytedeco.pytorch.Tensor tensor(Tensor input) {
        org.bytedeco.pytorch.Tensor tensor =
                torch.from_blob(new Address(input.data()), input.shape().toArray(), ElementType.options(input.type()));
        if (!copiesInputs) {
            return tensor;
        }
        try (tensor) {
            return tensor.clone();
        }
    }

    /** Memory that somebody else owns. */
    private static final class Address extends Pointer {
        Address(MemorySegment memory) {
            address = memory.address();
        }
    }

    private void add(IValue value, String key, int depth, List<TorchOutput> outputs) {
        size(outputs.size());
        if (value.isTensor()) {
            // A new object: the tensor of the value lies in the value.
            outputs.add(TorchOutput.tensor(key, new org.bytedeco.pytorch.Tensor(value.toTensor()), copiesOutputs));
        } else if (depth >= MAX_DEPTH) {
            outputs.add(TorchOutput.other(key, "a value within " + depth + " others"));
        } else if (value.isTuple()) {
            addTuple(value, key, depth, outputs);
        } else if (value.isList()) {
            addList(value, key, depth, outputs);
        } else if (value.isGenericDict()) {
            addDict(value, depth, outputs);
        } else if (value.isInt()) {
            outputs.add(TorchOutput.number(key, DataType.INT64, value.toInt()));
        } else if (value.isDouble()) {
            outputs.add(TorchOutput.number(key, DataType.FP64, value.toDouble()));
        } else if (value.isBool()) {
            outputs.add(TorchOutput.number(key, DataType.BOOL, value.toBool()));
        } else if (value.isString()) {
            outputs.add(TorchOutput.strings(key, Strings.bytes(value)));
        } else {
            outputs.add(TorchOutput.other(key, TorchSchema.text(value.tagKind())));
        }
    }

    private void addTuple(IValue value, String key, int depth, List<TorchOutput> outputs) {
        try (Tuple tuple = value.toTuple()) {
            TupleElements elements = tuple.elements();
            for (long i = 0; i < elements.size(); i++) {
                add(elements.get(i), key, depth + 1, outputs);
            }
        }
    }

    private void addDict(IValue value, int depth, List<TorchOutput> outputs) {
        try (GenericDict dict = value.toGenericDict();
                GenericDictIterator entry = dict.begin()) {
            for (long i = dict.size(); i > 0; i--) {
                try (IValue name = entry.access().key(); // copies, unlike the elements of a tuple
                        IValue element = entry.access().value()) {
                    String key = name.isString() ? Strings.text(name) : name.isInt() ? Long.toString(name.toInt()) : "";
                    add(element, key, depth + 1, outputs);
                }
                entry.increment();
            }
        }
    }

    private void addList(IValue value, String key, int depth, List<TorchOutput> outputs) {
        try (GenericList list = value.toList();
                Type.TypePtr type = list.elementType()) {
            int size = size(list.size());
            switch (type.get().kind().intern()) {
                case StringType -> outputs.add(TorchOutput.strings(key, Strings.bytes(list, size)));
                case IntType ->
                    outputs.add(TorchOutput.number(key, DataType.INT64, elements(list, size, IValue::toInt)));
                case FloatType ->
                    outputs.add(TorchOutput.number(key, DataType.FP64, elements(list, size, IValue::toDouble)));
                case BoolType ->
                    outputs.add(TorchOutput.number(key, DataType.BOOL, elements(list, size, IValue::toBool)));
                default -> {
                    for (int i = 0; i < size; i++) {
                        try (IValue element = list.get(i)) {
                            add(element, key, depth + 1, outputs);
                        }
                    }
                }
            }
        }
    }

    /** Refuses a list that would not fit into the heap. */
    private static int size(long size) {
        if (size > MAX_VALUES) {
            throw new IllegalStateException(
                    "a list of " + size + " values in the result (expected: at most " + MAX_VALUES + "; or a tensor)");
        }
        return (int) size;
    }

    private static Object[] elements(GenericList list, int size, Function<IValue, Object> read) {
        Object[] elements = new Object[size];
        for (int i = 0; i < size; i++) {
            try (IValue element = list.get(i)) {
                elements[i] = read.apply(element);
            }
        }
        return elements;
    }

    @Override
    public void close() {
        values.close();
    }
}
