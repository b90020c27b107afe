package dev.nereid.distribution;

import static com.tngtech.archunit.base.DescribedPredicate.alwaysTrue;
import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.conditions.ArchPredicates.are;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.ResponseObserver;
import dev.nereid.distribution.testing.TestPaths;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.ServiceLoader;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The architecture as rules: allowed dependencies, and constructs that no module uses. Reads the classes of every
 * module of the product; {@code benchmarks}, which is built later, has a test of its own.
 */
class ArchitectureTest {
    private static final List<String> MODULES = List.of(
            "backend-spi",
            "api",
            "scheduler",
            "extensions/cuda",
            "model-repository",
            "plugin-host",
            "server",
            "frontend-http",
            "frontend-grpc",
            "authors/backend-testkit",
            "authors/server-testkit",
            "extensions/backend-native",
            "backend-onnx",
            "backend-tensorrt",
            "backend-tensorflow",
            "backend-pytorch",
            "backend-python",
            "extensions/cache-redis",
            "extensions/storage-s3",
            "examples/char_lm",
            "examples/identity",
            "examples/implicit_state",
            "examples/iterative_sequence",
            "examples/repeat",
            "examples/sequence",
            "examples/square",
            "distribution");

    private static final String SPI = "dev.nereid.spi..";
    private static final String API = "dev.nereid.api..";
    private static final String MESSAGES = "inference..";
    private static final String SCHEDULER = "dev.nereid.scheduler..";
    private static final String CUDA = "dev.nereid.cuda..";
    private static final String SERVER = "dev.nereid.server..";
    private static final String PLUGIN_HOST = "dev.nereid.plugin..";
    private static final String REPOSITORY = "dev.nereid.repository..";
    private static final String HTTP = "dev.nereid.http..";
    private static final String GRPC = "dev.nereid.grpc..";
    private static final String BACKENDS = "dev.nereid.backend..";
    private static final String NATIVES = "dev.nereid.backend.natives..";
    private static final String TENSORFLOW_FILES = "dev.nereid.backend.tensorflow.graph..";
    private static final String CACHES = "dev.nereid.cache..";
    private static final String STORAGES = "dev.nereid.storage..";
    private static final String EXAMPLES = "dev.nereid.examples..";
    private static final String DISTRIBUTION = "dev.nereid.distribution..";
    private static final String TESTKITS = "dev.nereid.testkit..";
    private static final String SERVER_TESTKIT = "dev.nereid.testkit.server..";
    private static final String JDK = "java..";
    private static final String JDK_COMPILER = "javax..";
    private static final String NULLNESS = "org.jspecify..";
    private static final String ONNX_RUNTIME_JAVA_API = "ai.onnxruntime..";
    private static final String[] TRANSPORTS = {"io.vertx..", "io.netty..", "io.grpc.."};

    private static final JavaClasses CODE = new ClassFileImporter().importPaths(classDirectories());

    static Stream<ArchRule> rules() {
        return Stream.of(
                classes()
                        .that()
                        .resideInAPackage(SPI)
                        .should()
                        .onlyDependOnClassesThat()
                        .resideInAnyPackage(SPI, JDK, JDK_COMPILER, NULLNESS)
                        .because(
                                "backend-spi has no dependency, ever; its annotation processor is called by compilers"),
                noClasses()
                        .that()
                        .resideInAPackage(SPI)
                        .and()
                        .haveNameNotMatching("dev\\.nereid\\.spi\\.function\\.Function(Processor|Element).*")
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(JDK_COMPILER)
                        .because("a server may run without the JDK's module java.compiler"),
                noClasses()
                        .that()
                        .resideInAnyPackage(BACKENDS, CACHES, STORAGES, EXAMPLES)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(
                                API, MESSAGES, SCHEDULER, SERVER, PLUGIN_HOST, REPOSITORY, HTTP, GRPC, DISTRIBUTION)
                        .because("plugins depend on the SPI and nothing else of Nereid"),
                noClasses()
                        .that()
                        .resideInAnyPackage(BACKENDS, CACHES, STORAGES, EXAMPLES)
                        .and()
                        .resideOutsideOfPackage(TENSORFLOW_FILES)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage("com.google.protobuf..", "org.tensorflow..")
                        .because(
                                "protobuf is the server's, but for the reader of TensorFlow's files, whose plugin has a"
                                        + " protobuf of its own"),
                noClasses()
                        .that()
                        .resideInAPackage(TENSORFLOW_FILES)
                        .should()
                        .dependOnClassesThat(resideInAPackage("org.tensorflow..")
                                .and(DescribedPredicate.not(resideInAPackage("org.tensorflow.proto.."))))
                        .because("of TensorFlow Java the messages alone are used, which load nothing native"),
                slices().matching("dev.nereid.backend.(*)..")
                        .should()
                        .notDependOnEachOther()
                        .ignoreDependency(alwaysTrue(), resideInAPackage(NATIVES))
                        .because("backends have what several of them need from backend-native"),
                classes()
                        .that()
                        .resideInAPackage(NATIVES)
                        .should()
                        .onlyDependOnClassesThat()
                        .resideInAnyPackage(NATIVES, SPI, JDK, NULLNESS, "com.google.errorprone.annotations..")
                        .because("it knows no framework"),
                noClasses()
                        .that()
                        .resideInAPackage(API)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(
                                SCHEDULER, SERVER, PLUGIN_HOST, REPOSITORY, HTTP, GRPC, DISTRIBUTION, BACKENDS)
                        .because("the port does not depend on its implementations"),
                classes()
                        .that()
                        .resideInAPackage(SCHEDULER)
                        .should()
                        .onlyDependOnClassesThat()
                        .resideInAnyPackage(
                                SCHEDULER,
                                SPI,
                                API,
                                JDK,
                                NULLNESS,
                                "org.slf4j..",
                                "com.google.errorprone.annotations..")
                        .because("the scheduler is free of transports, protobuf, file systems and frameworks"),
                noClasses()
                        .that()
                        .resideInAPackage(SCHEDULER)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage("java.nio.file..")
                        .because("the scheduler does not use the file system"),
                classes()
                        .that()
                        .resideInAPackage(CUDA)
                        .should()
                        .onlyDependOnClassesThat()
                        .resideInAnyPackage(CUDA, SPI, API, JDK, NULLNESS, "com.google.errorprone.annotations..")
                        .because("the device layer knows places of memory, and nothing of models and requests"),
                noClasses()
                        .that()
                        .resideInAnyPackage(
                                SPI,
                                API,
                                SCHEDULER,
                                SERVER,
                                PLUGIN_HOST,
                                REPOSITORY,
                                HTTP,
                                GRPC,
                                "dev.nereid.backend.onnx..",
                                "dev.nereid.backend.tensorflow..")
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(CUDA)
                        .because("memory of GPUs is seen through the interfaces of the SPI and the port; a backend that"
                                + " calls the driver itself has the device layer in its plugin"),
                noClasses()
                        .that()
                        .resideInAnyPackage(HTTP, GRPC)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(SERVER, PLUGIN_HOST, REPOSITORY, SCHEDULER, DISTRIBUTION, BACKENDS)
                        .because("front ends see the port only"),
                noClasses()
                        .that()
                        .resideOutsideOfPackage(TESTKITS)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(TESTKITS)
                        .because("testkits are for tests"),
                noClasses()
                        .that()
                        .resideInAPackage(TESTKITS)
                        .and()
                        .resideOutsideOfPackage(SERVER_TESTKIT)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(
                                SCHEDULER, SERVER, PLUGIN_HOST, REPOSITORY, HTTP, GRPC, DISTRIBUTION, BACKENDS)
                        .because("the tests of scheduler, server and front ends use the fakes and the contract"),
                noClasses()
                        .that()
                        .resideInAPackage(HTTP)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(GRPC)
                        .because("front ends do not depend on each other"),
                noClasses()
                        .that()
                        .resideInAPackage(GRPC)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(HTTP)
                        .because("front ends do not depend on each other"),
                noClasses()
                        .that()
                        .resideInAnyPackage(SERVER, PLUGIN_HOST, REPOSITORY, SCHEDULER, SPI)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(TRANSPORTS)
                        .because("the server can be embedded without sockets"),
                noClasses()
                        .that()
                        .resideInAnyPackage(
                                SERVER,
                                PLUGIN_HOST,
                                REPOSITORY,
                                SCHEDULER,
                                SPI,
                                API,
                                HTTP,
                                GRPC,
                                DISTRIBUTION,
                                BACKENDS)
                        .and()
                        .resideOutsideOfPackages(
                                "dev.nereid.backend.tensorrt.presets..", "dev.nereid.backend.pytorch.presets..")
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(ONNX_RUNTIME_JAVA_API, "org.bytedeco..")
                        .because("frameworks are bound by their backends; ONNX Runtime's Java API is an oracle for"
                                + " tests; the presets of TensorRT and PyTorch stay in one package each"),
                noClasses()
                        .that()
                        .resideInAnyPackage(
                                SERVER, PLUGIN_HOST, REPOSITORY, SCHEDULER, SPI, API, HTTP, GRPC, DISTRIBUTION)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage("org.tensorflow..")
                        .because("frameworks are bound by their backends"),
                noClasses()
                        .that()
                        .resideOutsideOfPackage(BACKENDS)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(BACKENDS)
                        .because("backends are found in plugins/, or they do not exist"),
                noClasses()
                        .that()
                        .resideOutsideOfPackage(CACHES)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(CACHES, "io.lettuce..")
                        .because("caches are found in caches/, or they do not exist"),
                noClasses()
                        .that()
                        .resideOutsideOfPackage(STORAGES)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(STORAGES, "software.amazon..")
                        .because("storages are found in storage/, or they do not exist"),
                noClasses()
                        .that(are(not(named("dev.nereid.grpc.TransportLogFilter"))))
                        .and()
                        .haveNameNotMatching(
                                "dev\\.nereid\\.distribution\\.(process\\.SystemExitLogReader|log\\.PluginLogBridge).*")
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage("java.util.logging..")
                        .because(
                                "there is one log; SystemExitLogReader, TransportLogFilter and PluginLogBridge read what"
                                        + " libraries and plugins write to the log of the JDK"),
                noClasses()
                        .that(are(not(named("dev.nereid.distribution.Main")))
                                .and(are(not(named("dev.nereid.backend.tensorrt.presets.NvInferLoader"))))
                                .and(are(not(named("dev.nereid.backend.pytorch.presets.Natives")))))
                        .should()
                        .accessTargetWhere(consoleOrEnvironment())
                        .because("Main alone touches the console, the exit status and the environment; the presets of"
                                + " JavaCPP have a property to load no library by themselves"),
                noClasses()
                        .should()
                        .haveSimpleNameEndingWith("Util")
                        .orShould()
                        .haveSimpleNameEndingWith("Utils")
                        .orShould()
                        .haveSimpleNameEndingWith("Helper")
                        .orShould()
                        .haveSimpleNameEndingWith("Manager")
                        .orShould()
                        .haveSimpleNameEndingWith("Impl")
                        .because("a type is a role with a name you can guess"),
                noClasses()
                        .that()
                        .resideInAPackage("dev.nereid..")
                        .and(are(not(ending("Errors"))))
                        .should()
                        .dependOnClassesThat(are(named("io.grpc.Status")))
                        .because("only …Errors classes map codes to a protocol"),
                noClasses()
                        .that(are(not(ending("Errors"))))
                        .should()
                        .accessTargetWhere(settingOfHttpStatus())
                        .because("only …Errors classes map codes to a protocol"),
                noClasses()
                        .that()
                        .resideOutsideOfPackages(
                                SERVER,
                                PLUGIN_HOST,
                                REPOSITORY,
                                SCHEDULER,
                                DISTRIBUTION,
                                "dev.nereid.cuda..",
                                "dev.nereid.backend.python.process..",
                                "dev.nereid.testkit.contract..",
                                "dev.nereid.testkit.server..")
                        .and(are(not(named("dev.nereid.backend.pytorch.LargeStack"))))
                        .should()
                        .accessTargetWhere(makingOfThreads())
                        .because(
                                "threads are made by the server, the scheduler, what waits for GPUs and processes, what"
                                        + " needs a large stack, and"
                                        + " tests of backends"),
                methods()
                        .that()
                        .areDeclaredInClassesThat(resideInAPackage("dev.nereid.."))
                        .should()
                        .notHaveModifier(JavaModifier.SYNCHRONIZED)
                        .because("locks are fields"),
                noClasses().should().accessTargetWhere(sleeping()).because("nothing sleeps"),
                noClasses()
                        .that(are(not(named("dev.nereid.plugin.boundary.PluginBoundary"))))
                        .should()
                        .callMethod(Thread.class, "setContextClassLoader", ClassLoader.class)
                        .because("there is one boundary to plugins"),
                noClasses()
                        .that()
                        .resideOutsideOfPackage("dev.nereid.plugin")
                        .should()
                        .dependOnClassesThat()
                        .belongToAnyOf(ServiceLoader.class)
                        .because("no object of a plugin enters but through the boundary"),
                classes()
                        .that()
                        .implement(ResponseObserver.class)
                        .and(describe(
                                "have an observer",
                                type -> type.getFields().stream()
                                        .anyMatch(field -> field.getRawType().isAssignableTo(ResponseObserver.class))))
                        .should()
                        .beAssignableTo(ForwardingObserver.class)
                        .because("an observer that wraps another one forwards all of it, its flow too"),
                slices().matching("dev.nereid.(*)..").should().beFreeOfCycles(),
                SpiRules.stablePartsUseNoIncubatingTypes(),
                LayerRules.frontendGrpc(),
                LayerRules.frontendHttp(),
                noClasses()
                        .that()
                        .resideInAnyPackage(PLUGIN_HOST, REPOSITORY)
                        .should()
                        .dependOnClassesThat()
                        .resideInAnyPackage(SERVER, SCHEDULER, HTTP, GRPC, DISTRIBUTION)
                        .because("plugins and repositories know nothing of the models that are loaded"),
                noClasses()
                        .that()
                        .resideInAPackage(PLUGIN_HOST)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(REPOSITORY)
                        .because("a plugin does not know where models lie"),
                noClasses()
                        .that()
                        .resideInAPackage(REPOSITORY)
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage(PLUGIN_HOST)
                        .because("a repository does not know what executes its models"),
                LayerRules.scheduler(),
                LayerRules.server(),
                LayerRules.modelRepository(),
                LayerRules.pluginHost(),
                LayerRules.backendPython(),
                PackageRules.noCyclesOfPackages(),
                PackageRules.noLargeCyclesOfClasses(),
                classes().that().resideInAPackage("dev.nereid..").should(resideInNullMarkedPackage()));
    }

    @ParameterizedTest
    @MethodSource("rules")
    void holds(ArchRule rule) {
        rule.check(CODE);
    }

    @Test
    void readsTheClassesOfEveryModule() {
        assertThat(classDirectories()).hasSameSizeAs(MODULES);
        assertThat(CODE).anyMatch(resideInAPackage(SPI));
        assertThat(CODE).anyMatch(resideInAPackage(BACKENDS));
        assertThat(CODE).anyMatch(resideInAPackage(EXAMPLES));
    }

    private static List<Path> classDirectories() {
        return MODULES.stream()
                .map(module -> TestPaths.checkout().resolve(module).resolve("target/classes"))
                .filter(Files::isDirectory)
                .toList();
    }

    private static DescribedPredicate<JavaClass> named(String name) {
        return describe("is " + name, c -> outermost(c).getName().equals(name));
    }

    private static DescribedPredicate<JavaClass> ending(String suffix) {
        return describe("ends with " + suffix, c -> outermost(c).getSimpleName().endsWith(suffix));
    }

    private static JavaClass outermost(JavaClass type) {
        return type.getEnclosingClass().map(ArchitectureTest::outermost).orElse(type);
    }

    private static DescribedPredicate<JavaAccess<?>> consoleOrEnvironment() {
        List<String> members =
                List.of("out", "err", "in", "exit", "getenv", "getProperty", "getProperties", "setProperty", "console");
        return describe(
                "the console, the exit status, the environment or a system property",
                access -> access.getTargetOwner().isEquivalentTo(System.class)
                        && members.contains(access.getTarget().getName()));
    }

    private static DescribedPredicate<JavaAccess<?>> settingOfHttpStatus() {
        return describe(
                "the status of an HTTP response",
                access -> access.getTargetOwner().getName().equals("io.vertx.core.http.HttpServerResponse")
                        && access.getTarget().getName().equals("setStatusCode"));
    }

    private static com.tngtech.archunit.base.DescribedPredicate<com.tngtech.archunit.core.domain.JavaAccess<?>>
            makingOfThreads() {
        List<String> owners = List.of(
                "java.util.concurrent.Executors",
                "java.util.concurrent.ThreadPoolExecutor",
                "java.util.concurrent.ForkJoinPool",
                "java.util.Timer");
        List<String> ofThread = List.of("<init>", "ofPlatform", "ofVirtual", "startVirtualThread");
        return describe("the making of threads", access -> {
            String owner = access.getTargetOwner().getName();
            return owners.contains(owner)
                    || (owner.equals(Thread.class.getName())
                            && ofThread.contains(access.getTarget().getName()));
        });
    }

    private static com.tngtech.archunit.base.DescribedPredicate<com.tngtech.archunit.core.domain.JavaAccess<?>>
            sleeping() {
        List<String> owners = List.of(Thread.class.getName(), "java.util.concurrent.TimeUnit");
        return describe(
                "sleep",
                access -> owners.contains(access.getTargetOwner().getName())
                        && access.getTarget().getName().equals("sleep"));
    }

    private static ArchCondition<JavaClass> resideInNullMarkedPackage() {
        return new ArchCondition<>("reside in a package marked @NullMarked") {
            @Override
            public void check(JavaClass type, ConditionEvents events) {
                boolean marked = type.getPackage().isAnnotatedWith(NullMarked.class);
                events.add(new SimpleConditionEvent(type, marked, type.getPackageName() + " of " + type.getName()));
            }
        };
    }
}
