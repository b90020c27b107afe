package dev.nereid.spi.function;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

/** Errors in functions: at compile time by the processor, and without it when the server asks for the name. */
final class FunctionMistakesTest {
    private static final String BODY = "{ public void apply(InferenceRequest request, ModelContext model) {} }";
    private static final String PUBLIC = "public class Wrong implements TensorFunction ";
    private static final String NAMED = "@BackendFunction(name = \"wrong\") ";
    private static final String FUNCTION = "annotation @BackendFunction: ";

    /** Wrong annotations, each with its error. */
    static final List<Arguments> DECLARATIONS = List.of(
            Arguments.of(
                    "@BackendFunction(name = \"Wrong One\")",
                    FUNCTION + "name: \"Wrong One\" (expected: lower-case letters, digits, _ and -)"),
            Arguments.of(
                    "@BackendFunction(name = \"\")",
                    FUNCTION + "name: \"\" (expected: lower-case letters, digits, _ and -)"),
            Arguments.of(
                    "@BackendFunction(name = \"wrong\", maxBatchSize = -2)",
                    FUNCTION + "maxBatchSize: -2 (expected: 0 or more, or no value to leave it to the configuration)"),
            Arguments.of(
                    "@BackendFunction(name = \"wrong\", maxBatchSize = 0, dynamicBatching = true)",
                    FUNCTION + "dynamicBatching: true (expected: false, since maxBatchSize = 0 says that there are no"
                            + " batches)"),
            Arguments.of(
                    NAMED + "@Input(name = \"\", type = DataType.FP32, dims = 1)",
                    "annotation @Input '': name: \"\" (expected: the name of a tensor)"),
            Arguments.of(
                    NAMED + "@Input(name = \"A\", type = DataType.FP32, dims = 1)"
                            + " @Input(name = \"A\", type = DataType.INT8, dims = 2)",
                    "annotation @Input 'A': declared twice (expected: each name once)"),
            Arguments.of(
                    NAMED + "@Output(name = \"A\", type = DataType.FP32, dims = 1)"
                            + " @Output(name = \"A\", type = DataType.FP32, dims = 1)",
                    "annotation @Output 'A': declared twice (expected: each name once)"),
            Arguments.of(
                    NAMED + "@Input(name = \"A\", type = DataType.FP32, dims = {})",
                    "annotation @Input 'A': dims: [] (expected: at least one, each 1 or more, or -1 for any size)"),
            Arguments.of(
                    NAMED + "@Output(name = \"A\", type = DataType.FP32, dims = {3, 0})",
                    "annotation @Output 'A': dims: [3, 0] (expected: at least one, each 1 or more, or -1 for any size)"),
            Arguments.of(
                    NAMED + "@Output(name = \"A\", type = DataType.FP32, dims = -2)",
                    "annotation @Output 'A': dims: [-2] (expected: at least one, each 1 or more, or -1 for any size)"),
            Arguments.of(
                    "@BackendFunction(name = \"wrong\", maxBatchSize = 0)"
                            + " @Input(name = \"A\", type = DataType.FP32, dims = 1, ragged = true)",
                    "annotation @Input 'A': ragged: true (expected: false, since maxBatchSize = 0 says that there are no"
                            + " batches)"));

    /** Classes that the server could not create or would not call, and the error. */
    static final List<Arguments> CLASSES = List.of(
            Arguments.of(
                    NAMED + "public abstract class Wrong implements TensorFunction {}",
                    FUNCTION + "on an abstract class (expected: a class that the server can create)"),
            Arguments.of(
                    NAMED + "public interface Wrong extends TensorFunction {}",
                    FUNCTION + "on a type of kind INTERFACE (expected: a class)"),
            Arguments.of(
                    NAMED + "public enum Wrong implements TensorFunction { A; " + BODY.substring(1),
                    FUNCTION + "on a type of kind ENUM (expected: a class)"),
            Arguments.of(
                    NAMED + "class Wrong implements TensorFunction { public Wrong() {} " + BODY.substring(1),
                    FUNCTION + "on a class that the server cannot access: the class is not public (expected: public)"),
            Arguments.of(
                    NAMED + PUBLIC + "{ public Wrong(int size) {} private Wrong() {} " + BODY.substring(1),
                    FUNCTION + "on a class without a public constructor without parameters (found: public Wrong(int),"
                            + " private Wrong(); expected: public Wrong())"),
            Arguments.of(
                    NAMED + "public record Wrong(int size) implements TensorFunction " + BODY,
                    FUNCTION + "on a class without a public constructor without parameters (found: public Wrong(int);"
                            + " expected: public Wrong())"),
            Arguments.of(
                    NAMED + "public class Wrong {}",
                    FUNCTION + "on a class that implements nothing (expected: TensorFunction, AsyncTensorFunction or"
                            + " StreamingFunction)"),
            Arguments.of(
                    NAMED + "public class Wrong implements Runnable { public void run() {} }",
                    FUNCTION
                            + "on a class that implements java.lang.Runnable (expected: TensorFunction, AsyncTensorFunction"
                            + " or StreamingFunction)"),
            Arguments.of(
                    "@Input(name = \"A\", type = DataType.FP32, dims = 1) " + PUBLIC + BODY,
                    FUNCTION + "missing beside @Input or @Output (expected: @BackendFunction(name = \"…\"))"),
            Arguments.of(
                    NAMED + PUBLIC + "{ public String name() { return \"other\"; } " + BODY.substring(1),
                    FUNCTION + "name: \"wrong\" beside the method name() (expected: the annotation alone)"),
            Arguments.of(
                    NAMED + "@Output(name = \"A\", type = DataType.FP32, dims = 1) " + PUBLIC
                            + "{ public ModelCompletion completion() { return ModelCompletion.EMPTY; } "
                            + BODY.substring(1),
                    FUNCTION + "declares tensors or batching beside the method completion() (expected: one of the"
                            + " two)"));

    @TempDir
    private Path classes;

    private SourceCompiler compiler;

    @BeforeEach
    void setUp() {
        compiler = new SourceCompiler(classes);
    }

    @ParameterizedTest
    @FieldSource("DECLARATIONS")
    void areCompileErrors(String annotations, String message) {
        assertThat(compiler.errors("package dev.example;\n" + annotations + "\n" + PUBLIC + BODY))
                .singleElement()
                .asString()
                .endsWith("class dev.example.Wrong: " + message)
                .matches("[34]: .*");
        assertThat(compiler.serviceFile()).doesNotExist();
    }

    @ParameterizedTest
    @FieldSource("DECLARATIONS")
    void areReportedByTheNameWithoutTheProcessor(String annotations, String message) throws Exception {
        compiler.with("-proc:none").compile("package dev.example;\n" + annotations + "\n" + PUBLIC + BODY);
        TensorFunction wrong = load("dev.example.Wrong");

        assertThatIllegalStateException().isThrownBy(wrong::name).withMessage("class dev.example.Wrong: " + message);
        assertThatIllegalStateException().isThrownBy(wrong::completion);
    }

    @Test
    void areReportedTogether() throws Exception {
        String source =
                "@BackendFunction(name = \"!\") @Input(name = \"A\", type = DataType.FP32, dims = 0)\n" + PUBLIC + BODY;
        compiler.with("-proc:none").compile(source);

        assertThatIllegalStateException()
                .isThrownBy(load("Wrong")::name)
                .withMessageContaining("name: \"!\"")
                .withMessageContaining("; annotation @Input 'A': dims: [0]");
        assertThat(compiler.with("-proc:full").errors(source)).hasSize(2);
    }

    @Test
    void aMissingAnnotationIsReportedByTheName() throws Exception {
        compiler.with("-proc:none").compile(PUBLIC + BODY);

        assertThatIllegalStateException()
                .isThrownBy(load("Wrong")::name)
                .withMessage("class Wrong: annotation @BackendFunction: missing (expected: @BackendFunction(name ="
                        + " \"…\"), or a method name())");
    }

    @Test
    void aFunctionWithoutANameIsAWarning() {
        String nested = "public class Outer { public static class Wrong implements TensorFunction " + BODY + " }";
        for (String source : List.of(
                PUBLIC + BODY,
                "public class Wrong implements StreamingFunction"
                        + " { public void apply(InferenceRequest request, ResponseSender sender) {} }",
                "public record Wrong() implements TensorFunction " + BODY,
                nested)) {
            assertThat(compiler.warnings(source))
                    .singleElement()
                    .asString()
                    .matches("2: class (Outer\\$)?Wrong: annotation @BackendFunction: missing \\(expected:"
                            + " @BackendFunction\\(name = \"…\"\\), or a method name\\(\\); a class that is not public if another"
                            + " function opens it\\)");
        }
        assertThat(compiler.serviceFile()).doesNotExist();
    }

    @Test
    void aFunctionThatNoServerCanCreateNeedsNoName() {
        assertThat(compiler.warnings(
                        "class Opened implements TensorFunction " + BODY,
                        "public class Sized implements TensorFunction { public Sized(int size) {} " + BODY.substring(1),
                        "public abstract class Base implements TensorFunction {}",
                        "interface House extends TensorFunction { default String name() { return \"house\"; } }",
                        "public class Inherits implements House " + BODY,
                        "public class Named implements TensorFunction { public String name() { return \"named\"; } "
                                + BODY.substring(1),
                        NAMED + PUBLIC + BODY))
                .isEmpty();
    }

    @ParameterizedTest
    @FieldSource("CLASSES")
    void ofClassesAreCompileErrors(String source, String message) {
        assertThat(compiler.errors(source)).singleElement().asString().endsWith(": class Wrong: " + message);
        assertThat(compiler.serviceFile()).doesNotExist();
    }

    @Test
    void ofNestedClassesAreCompileErrors() {
        assertThat(compiler.errors("class Outer { " + NAMED + PUBLIC + BODY + " }"))
                .hasSize(2)
                .anyMatch(error -> error.endsWith("class Outer$Wrong: " + FUNCTION
                        + "on a class that the server cannot create: the class is an inner class (expected: a class of its"
                        + " own, or a static one)"))
                .anyMatch(error -> error.endsWith("class Outer$Wrong: " + FUNCTION
                        + "on a class that the server cannot access: the enclosing Outer is not public (expected:"
                        + " public)"));
    }

    @Test
    void twoFunctionsOfOneNameAreACompileError() {
        assertThat(compiler.errors(
                        NAMED + "public class A implements TensorFunction " + BODY,
                        NAMED + "public class B implements TensorFunction " + BODY))
                .singleElement()
                .asString()
                .endsWith("class B: " + FUNCTION + "name: \"wrong\" is that of class A (expected: a name of its own)");
    }

    @Test
    void errorsOfTheSourceAreLeftToTheCompiler() {
        for (String source : Stream.of(
                        "@BackendFunction public class Wrong implements TensorFunction " + BODY,
                        "@BackendFunction(name = 1) " + PUBLIC + BODY,
                        NAMED + "@Input(name = \"A\", type = DataType.FP33, dims = 1) " + PUBLIC + BODY,
                        NAMED + "@Input(name = \"A\", dims = 1) " + PUBLIC + BODY,
                        NAMED + "@Input(name = \"A\", type = DataType.FP32, dims = \"1\") " + PUBLIC + BODY,
                        NAMED + "@Input(name = \"A\", type = DataType.FP32, dims = 1, shape = 2) " + PUBLIC + BODY,
                        NAMED + "public class Wrong implements Missing " + BODY)
                .toList()) {
            assertThat(compiler.errors(source))
                    .as(source)
                    .isNotEmpty()
                    .noneMatch(error -> error.contains("class Wrong: annotation"))
                    .noneMatch(error -> error.contains("Exception"));
        }
    }

    private TensorFunction load(String name)
            throws IOException, ClassNotFoundException, NoSuchMethodException, InstantiationException,
                    IllegalAccessException, InvocationTargetException {
        URLClassLoader loader = new URLClassLoader(
                new URL[] {classes.toUri().toURL()}, getClass().getClassLoader());
        return (TensorFunction) loader.loadClass(name).getDeclaredConstructor().newInstance();
    }
}
