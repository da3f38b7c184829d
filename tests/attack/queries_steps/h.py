import json, os, random, signal, subprocess, sys, time, urllib.request, urllib.error, urllib.parse, socket, shutil
SVC='/work/wt/attackq/.venv/bin/svc'
def freeport():
    s=socket.socket(); s.bind(('127.0.0.1',0)); p=s.getsockname()[1]; s.close(); return p
class S:
    def __init__(s, db, auth='disabled', args=(), workers=2):
        s.db=db; s.port=freeport(); s.base=f'http://127.0.0.1:{s.port}'; s.auth=auth; s.args=list(args); s.workers=workers; s.token=None
        s.start()
    def start(s):
        s.log=open(str(s.db)+'.log','ab')
        s.p=subprocess.Popen(['nice','-n','5',SVC,'start','-D',str(s.db),'--auth',s.auth,'--host','127.0.0.1','--port',str(s.port),'--workers',str(s.workers),*s.args],stdout=subprocess.PIPE,stderr=s.log,start_new_session=True)
        t=time.time(); s.first=b''
        while time.time()-t<60:
            try:
                with urllib.request.urlopen(s.base+'/health',timeout=2): break
            except urllib.error.HTTPError: break
            except OSError:
                if s.p.poll() is not None: raise SystemExit('server died '+s.p.stdout.read().decode())
                time.sleep(.1)
    def stop(s):
        s.p.terminate()
        try: s.p.wait(30)
        except subprocess.TimeoutExpired: s.kill()
    def kill(s):
        try: os.killpg(s.p.pid, signal.SIGKILL)
        except ProcessLookupError: pass
        s.p.wait()
    def pids(s):
        out=subprocess.run(['ps','-eo','pid,ppid,pgid,comm'],capture_output=True,text=True).stdout.splitlines()[1:]
        return [(int(a),c) for a,b,g,c in (l.split(None,3) for l in out) if int(g)==s.p.pid]
    def q(s, method, path, body=None, token=None, timeout=60, raw=False, headers=None):
        h=dict(headers or {}); tok=token or s.token
        if tok: h['Authorization']='Bearer '+tok
        data=None
        if isinstance(body,(bytes,)): data=body
        elif body is not None: data=json.dumps(body).encode(); h['Content-Type']='application/json'
        r=urllib.request.Request(s.base+urllib.parse.quote(path,safe='/?=&%'),data=data,method=method,headers=h)
        try:
            with urllib.request.urlopen(r,timeout=timeout) as f: b=f.read(); st=f.status
        except urllib.error.HTTPError as e: b=e.read(); st=e.code
        if raw: return st,b
        try: return st,json.loads(b)
        except Exception: return st,b
    def put(s,path,obj,ct='application/json',token=None):
        b=obj if isinstance(obj,bytes) else json.dumps(obj).encode()
        return s.q('PUT','/files'+path,b,headers={'Content-Type':ct},token=token)
    def query(s,path,where,token=None,**k):
        return s.q('POST','/query',dict(path=path,where=where,**k),token=token)
    def root(s):
        return s.q('HEAD','/files/')[0]
    def allpaths(s,path,where,token=None,**k):
        out=[];k.setdefault('limit',1000)
        while True:
            st,r=s.query(path,where,token,**k)
            if st!=200: return (st,r)
            out+=[x['path'] for x in r['results']]
            if not r['has_more']: return out
            k['after']=r['next_cursor']
def cli(*a,**k):
    return subprocess.run(['nice','-n','5',SVC,*map(str,a)],capture_output=True,text=True,timeout=120,**k)
def note(line):
    with open('/tmp/attackq/FINDINGS.md','a') as f: f.write(line+'\n')
