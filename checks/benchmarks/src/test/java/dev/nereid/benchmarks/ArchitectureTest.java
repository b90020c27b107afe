package dev.nereid.benchmarks;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import dev.nereid.benchmarks.gpu.GpuCheck;
import dev.nereid.benchmarks.process.EchoMain;
import dev.nereid.distribution.PackageRules;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Checks the architecture rules that apply to a tool outside of the server. They are those of the other modules. */
final class ArchitectureTest {
    private static final JavaClasses CODE = new ClassFileImporter().importPath(Path.of("target/classes"));

    static Stream<ArchRule> rules() {
        return Stream.of(
                PackageRules.noCyclesOfPackages(),
                PackageRules.noLargeCyclesOfClasses(),
                classes()
                        .should()
                        .resideInAPackage("dev.nereid.benchmarks..")
                        .because("a class in a package of another module would measure what no user can call"),
                noClasses()
                        .that()
                        .doNotBelongToAnyOf(Main.class, EchoMain.class, GpuCheck.class)
                        .should()
                        .accessTargetWhere(consoleOrEnvironment())
                        .because("only the entry points use the console, the exit status and the environment"));
    }

    @ParameterizedTest
    @MethodSource("rules")
    void holds(ArchRule rule) {
        rule.check(CODE);
    }

    private static DescribedPredicate<JavaAccess<?>> consoleOrEnvironment() {
        List<String> members =
                List.of("out", "err", "in", "exit", "getenv", "getProperty", "getProperties", "setProperty", "console");
        return describe(
                "the console, the exit status, the environment or a system property",
                access -> access.getTargetOwner().isEquivalentTo(System.class)
                        && members.contains(access.getTarget().getName()));
    }
}
