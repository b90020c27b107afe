package dev.nereid.backend.pytorch.presets;

import dev.nereid.spi.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Function;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.GenericList;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.TensorType;
import org.bytedeco.pytorch.Type;
import org.bytedeco.pytorch.global.torch;

/** Makes dictionaries of texts and tensors, by a script: the presets have no function for it. Static functions only. */
final class Dictionaries {
    private static final String SOURCE = """
            def dictionary(keys: List[str], values: List[Tensor]) -> Dict[str, Tensor]:
                result: Dict[str, Tensor] = {}
                for i in range(len(keys)):
                    result[keys[i]] = values[i]
                return result
            """;

    /** The first execution records, the second one optimizes. */
    private static final int COMPILING_RUNS = 2;

    /** Kept for the life of the process. */
    private static final CompilationUnit UNIT = torch.compile(SOURCE);

    private static final org.bytedeco.pytorch.Function FUNCTION = UNIT.get_function(new QualifiedName("dictionary"));

    /** The type of tensors, which PyTorch never frees. */
    private static final Type.TypePtr TENSOR = new Type.TypePtr(TensorType.get());

    private Dictionaries() {}

    /** Creates the constants, and what PyTorch creates with the first executions of a script. */
    static void create() {
        for (int i = 0; i < COMPILING_RUNS; i++) {
            of(List.of(), List.of(), _ -> new org.bytedeco.pytorch.Tensor()).close();
        }
    }

    /** Returns an empty list of tensors, owned by the caller. */
    static GenericList tensorList() {
        return new GenericList(TENSOR);
    }

    /** Returns a dictionary, owned by the caller. */
    static IValue of(List<String> keys, List<Tensor> inputs, Function<Tensor, org.bytedeco.pytorch.Tensor> convert) {
        try (GenericList names = Strings.list();
                GenericList tensors = tensorList();
                IValueVector arguments = new IValueVector()) {
            for (int i = 0; i < keys.size(); i++) {
                try (IValue name = Strings.value(keys.get(i).getBytes(StandardCharsets.UTF_8));
                        org.bytedeco.pytorch.Tensor tensor = convert.apply(inputs.get(i));
                        IValue value = new IValue(tensor)) {
                    names.push_back(name);
                    tensors.push_back(value);
                }
            }
            try (IValue first = new IValue(names);
                    IValue second = new IValue(tensors)) {
                arguments.resize(2);
                arguments.put(0, first);
                arguments.put(1, second);
                return FUNCTION.apply(arguments);
            }
        }
    }
}
