// Batch mode does not compare the parameters with their patterns.
import javax.lang.model.SourceVersion

def artifact = request.artifactId
def name = request.getPackage()
def type = request.properties['className']
def form = request.properties['form']
def problem = null
if (!(artifact ==~ /[a-z][a-z0-9]*([-_][a-z0-9]+)*/)) {
    problem = "artifactId: '${artifact}' (expected: lower-case letters and digits, parts joined by - or _)"
} else if (!SourceVersion.isName(name)) {
    problem = "package: '${name}' (expected: a name of a Java package, by -Dpackage)"
} else if (!SourceVersion.isIdentifier(type) || SourceVersion.isKeyword(type)) {
    problem = "className: '${type}' (expected: a name of a Java class, by -DclassName)"
} else if (!(form in ['function', 'framework'])) {
    problem = "form: '${form}' (expected: function or framework)"
}
if (problem != null) {
    throw new IllegalArgumentException("${problem}; delete ${new File(request.outputDirectory, artifact)} and generate again")
}

// The files of both forms are generated.
def project = new File(request.outputDirectory, artifact)
def sources = "src/main/java/${name.replace('.', '/')}/${type}"
def unused = form == 'framework'
        ? ["${sources}.java", "models/${artifact}/1/README.txt"]
        : ['Provider', 'Backend', 'Model', 'Instance'].collect { "${sources}${it}.java" } +
                ["models/${artifact}/1/scale.txt", 'src/main/resources/META-INF/services/dev.nereid.spi.BackendProvider',
                 'src/main/resources/META-INF/services', 'src/main/resources/META-INF', 'src/main/resources']
unused.each { new File(project, it).delete() }
