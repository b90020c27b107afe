package dev.nereid.spi.function;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compiles functions, and loads what the compiler wrote. */
final class FunctionProcessorTest {
    private static final String BODY = "{ public void apply(InferenceRequest request, ModelContext model) {} }";
    private static final String ASYNC_BODY = "{ public CompletionStage<?> apply(InferenceRequest request,"
            + " ModelContext model) { return CompletableFuture.completedStage(null); } }";
    private static final String ONE = function("One");
    private static final String TWO = function("Two");

    @TempDir
    private Path classes;

    private SourceCompiler compiler;

    @BeforeEach
    void setUp() {
        compiler = new SourceCompiler(classes);
    }

    private static String function(String name) {
        return "@BackendFunction(name = \"" + name.toLowerCase(java.util.Locale.ROOT) + "\") public final class " + name
                + " implements TensorFunction " + BODY;
    }

    @Test
    void completesWhatTheBuilderDoes() throws IOException {
        compiler.compile("""
                package dev.example;
                @BackendFunction(name = "scores-2_x", maxBatchSize = 8, dynamicBatching = true)
                @Input(name = "TEXT", type = DataType.BYTES, dims = 1)
                @Input(name = "IMAGE", type = DataType.UINT8, dims = {Shape.VARIABLE, 224, 3}, ragged = true)
                @Input(name = "LIMIT", type = DataType.INT32, dims = 1, optional = true)
                @Output(name = "SCORES", type = DataType.FP32, dims = {-1, 4})
                @Output(name = "TEXT", type = DataType.BYTES, dims = 1)
                public class Scores implements TensorFunction
                """ + BODY);

        TensorFunction function = (TensorFunction) only(compiler.providers());
        assertThat(function.name()).isEqualTo("scores-2_x");
        assertThat(function.completion())
                .isEqualTo(ModelCompletion.EMPTY
                        .withProposedMaxBatchSize(8)
                        .withMaxBatchSizeLimit(8)
                        .withDynamicBatching()
                        .withInput("TEXT", DataType.BYTES, 1)
                        .withInput(TensorSpec.of("IMAGE", DataType.UINT8, Shape.of(-1, 224, 3))
                                .with(TensorSpec.Trait.RAGGED))
                        .withInput(TensorSpec.of("LIMIT", DataType.INT32, Shape.of(1))
                                .with(TensorSpec.Trait.OPTIONAL))
                        .withOutput("SCORES", DataType.FP32, -1, 4)
                        .withOutput("TEXT", DataType.BYTES, 1));
    }

    /** As in builds that refuse warnings; the deprecated, incubating and generic parts of the SPI included. */
    @Test
    void compilesWithoutAWarning() {
        compiler.with("-proc:full", "-Xlint:all", "-Werror");

        assertThat(compiler.warnings(
                        """
                        package dev.example;
                        @BackendFunction(name = "scores", maxBatchSize = 8)
                        @Input(name = "A", type = DataType.FP32, dims = 1)
                        @Input(name = "B", type = DataType.FP32, dims = 1)
                        @Output(name = "C", type = DataType.FP32, dims = 1)
                        public final class Scores implements TensorFunction {
                            @Override
                            public void apply(InferenceRequest request, ModelContext model) {
                                throw new BackendException(ErrorCode.INTERNAL, "x");
                            }
                        }
                        """,
                        "@BackendFunction(name = \"later\") public final class Later implements AsyncTensorFunction "
                                + ASYNC_BODY,
                        """
                        package dev.example;
                        public final class Provider implements BackendProvider {
                            @Override
                            public String name() {
                                return "x";
                            }

                            @Override
                            public Backend create(BackendContext context) {
                                return model -> {
                                    model.metrics().counter("a", "b");
                                    model.tracing();
                                    model.models();
                                    return instance -> batch -> batch.requests().forEach(InferenceRequest::response);
                                };
                            }
                        }
                        """))
                .isEmpty();
    }

    @Test
    void completesNothingThatIsNotDeclared() throws IOException {
        compiler.compile(ONE);

        assertThat(((TensorFunction) only(compiler.providers())).completion()).isEqualTo(ModelCompletion.EMPTY);
    }

    @Test
    void findsAsynchronousNestedAndSeveralFunctions() throws IOException {
        compiler.compile(
                "package dev.example;\n@BackendFunction(name = \"later\", maxBatchSize = 0)"
                        + " @Input(name = \"A\", type = DataType.BOOL, dims = 2)"
                        + " public final class Later implements AsyncTensorFunction " + ASYNC_BODY,
                "package dev.example;\npublic interface Group { @BackendFunction(name = \"nested\")"
                        + " record Nested() implements TensorFunction " + BODY + " }",
                ONE,
                "public abstract class Base implements TensorFunction " + BODY,
                "@BackendFunction(name = \"derived\") public class Derived extends Base { public Derived() {}"
                        + " Derived(int size) {} }");

        assertThat(compiler.named()).containsExactly("Derived", "One", "dev.example.Group$Nested", "dev.example.Later");
        assertThat(compiler.providers())
                .extracting(BackendProvider::name)
                .containsExactly("derived", "one", "nested", "later");
        AsyncTensorFunction later = (AsyncTensorFunction) compiler.providers().getLast();
        assertThat(later.completion())
                .isEqualTo(ModelCompletion.EMPTY
                        .withProposedMaxBatchSize(0)
                        .withMaxBatchSizeLimit(0)
                        .withInput("A", DataType.BOOL, 2));
    }

    @Test
    void worksOnAProcessorPathAndByName() throws IOException {
        compiler.with("-processorpath", SourceCompiler.spi().toString()).compile(ONE);
        assertThat(compiler.named()).containsExactly("One");

        Files.delete(compiler.serviceFile());
        compiler.with("-processor", FunctionProcessor.class.getName()).compile(ONE);
        assertThat(compiler.named()).containsExactly("One");
    }

    @Test
    void writesNothingWithoutProcessingAndWithoutFunctions() {
        compiler.with("-proc:none").compile(ONE);
        assertThat(compiler.serviceFile()).doesNotExist();

        compiler.with("-proc:full").compile("public class Plain {}");
        assertThat(compiler.serviceFile()).doesNotExist();
    }

    @Test
    void keepsWhatWasWrittenByHand() throws IOException {
        String byHand = "# two backends of our own\nOne # since version 1\nOther\n";
        Files.createDirectories(compiler.serviceFile().getParent());
        Files.writeString(compiler.serviceFile(), byHand);

        compiler.compile(ONE, TWO);

        assertThat(compiler.serviceFile()).content().startsWith(byHand);
        assertThat(compiler.named()).containsExactly("One # since version 1", "Other", "Two");
    }

    @Test
    void keepsTheClassesOfEarlierCompilations() throws IOException {
        compiler.compile(ONE, TWO);
        String both = Files.readString(compiler.serviceFile());

        compiler.compile(TWO);
        assertThat(compiler.serviceFile()).hasContent(both);
        compiler.compile("public class Plain {}");
        assertThat(compiler.serviceFile()).hasContent(both);
    }

    @Test
    void dropsAClassWithoutItsAnnotationOrThatIsGone() throws IOException {
        compiler.compile(ONE, TWO, function("Three"));

        compiler.compile("public class One {}");
        assertThat(compiler.named()).containsExactly("Three", "Two");
        Files.delete(classes.resolve("Two.class"));
        compiler.compile(function("Three"));
        assertThat(compiler.named()).containsExactly("Three");
        compiler.compile("public class Three {}");
        assertThat(compiler.named()).isEmpty();
    }

    @Test
    void leavesTheServiceFileAloneIfNothingChanges() throws IOException {
        compiler.compile(ONE);
        Object before = Files.getLastModifiedTime(compiler.serviceFile());
        Files.setLastModifiedTime(compiler.serviceFile(), java.nio.file.attribute.FileTime.fromMillis(1_000));

        compiler.compile(ONE);

        assertThat(before).isNotEqualTo(Files.getLastModifiedTime(compiler.serviceFile()));
        assertThat(Files.getLastModifiedTime(compiler.serviceFile()).toMillis()).isEqualTo(1_000);
    }

    @Test
    void letsAFunctionBuildItsCompletion() throws IOException {
        compiler.compile("@BackendFunction(name = \"built\") public final class Built implements TensorFunction {"
                + " public ModelCompletion completion() {"
                + " return ModelCompletion.EMPTY.withInput(\"A\", DataType.INT8, 3); } "
                + BODY.substring(1));

        assertThat(((TensorFunction) only(compiler.providers())).completion().inputs())
                .containsExactly(TensorSpec.of("A", DataType.INT8, Shape.of(3)));
    }

    private static BackendProvider only(List<BackendProvider> providers) {
        assertThat(providers).hasSize(1);
        return providers.getFirst();
    }
}
